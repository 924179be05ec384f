#pragma once

#include "kernels/cpu/matmul/vectors_avx2.h"

// Sums over the 32 products of each of eight groups at once. A group's vector holds the sums of 16 pairs of
// products as words; its low 128 bits are the group's first 16 values. Transposing while adding takes a third
// of the instructions that adding up one vector after the other would.

namespace coterie::cpu::matmul::avx2 {

/// Pairs (2i, 2i + 1) of `a` and `b` interleaved and added: a0+a4 a1+a5 | b0+b4 b1+b5 | a2+a6 a3+a7 | b2+b6
/// b3+b7 in words.
COTERIE_INLINE Int add_interleaved(Int a, Int b) {
    return add_words(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
COTERIE_INLINE Int add_interleaved_lanes(Int a, Int b) {
    return add_lanes(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}

/// The eight groups' sums in order, from those of groups 0 to 3 and 4 to 7 in each half.
COTERIE_INLINE Int add_halves(Int first, Int second) {
    return add_lanes(_mm256_permute2x128_si256(first, second, 0x20),
                     _mm256_permute2x128_si256(first, second, 0x31));
}

/// Integer factors of the two halves of groups: `first` those of groups 0 to 3, a lane a group in each half,
/// both words alike; `second` those of groups 4 to 7.
struct HalfFactors {
    Int first;
    Int second;

    /// From 16 words, two a group.
    COTERIE_INLINE static HalfFactors of(Int words) {
        const Int pick = _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13, 2, 3, 2, 3, 6,
                                          7, 6, 7, 10, 11, 10, 11, 14, 15, 14, 15);
        return {shuffle_bytes(_mm256_permute4x64_epi64(words, 0x44), pick),
                shuffle_bytes(_mm256_permute4x64_epi64(words, 0xee), pick)};
    }
    COTERIE_INLINE static HalfFactors ones() { return {every_word(1), every_word(1)}; }
};

/// Four groups' sums in each half where the codes are at most `kLargest`: words are added as long as they
/// cannot overflow.
template <int kLargest>
COTERIE_INLINE Int sums_of_four(const Int* words, Int factors) {
    constexpr int kWord = 2 * kLargest * 127;
    if constexpr (4 * kWord <= 32767) {
        const Int a = add_interleaved(words[0], words[1]);
        const Int b = add_interleaved(words[2], words[3]);
        return dot_words(add_words(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)), factors);
    } else if constexpr (2 * kWord <= 32767) {
        const Int a = dot_words(add_interleaved(words[0], words[1]), _mm256_shuffle_epi32(factors, 0x44));
        const Int b = dot_words(add_interleaved(words[2], words[3]), _mm256_shuffle_epi32(factors, 0xee));
        return add_lanes(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    } else {
        const Int a = add_interleaved_lanes(dot_words(words[0], _mm256_shuffle_epi32(factors, 0x00)),
                                            dot_words(words[1], _mm256_shuffle_epi32(factors, 0x55)));
        const Int b = add_interleaved_lanes(dot_words(words[2], _mm256_shuffle_epi32(factors, 0xaa)),
                                            dot_words(words[3], _mm256_shuffle_epi32(factors, 0xff)));
        return add_lanes(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    }
}

/// The integer sums of eight groups, each half of a group times its factor.
template <int kLargest>
COTERIE_INLINE Int sums_of_eight(const Int words[8], const HalfFactors& factors) {
    return add_halves(sums_of_four<kLargest>(words, factors.first),
                      sums_of_four<kLargest>(words + 4, factors.second));
}
template <int kLargest>
COTERIE_INLINE Int sums_of_eight(const Int words[8]) {
    return sums_of_eight<kLargest>(words, HalfFactors::ones());
}

COTERIE_INLINE Int load_bytes(const void* at) { return _mm256_loadu_si256(static_cast<const Int*>(at)); }

/// Sixteen signed bytes as words.
COTERIE_INLINE Int words_of(__m128i bytes) { return _mm256_cvtepi8_epi16(bytes); }

/// The products of 32 unsigned codes with 32 activations, added in pairs.
COTERIE_INLINE Int products(Int codes, const std::int8_t* q) {
    return _mm256_maddubs_epi16(codes, load_bytes(q));
}

/// The same for signed codes; -128 is allowed.
COTERIE_INLINE Int signed_products(Int codes, const std::int8_t* q) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(load_bytes(q), codes));
}

}  // namespace coterie::cpu::matmul::avx2
