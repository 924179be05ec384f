#pragma once

#include "kernels/cpu/matmul/rows/row_kernel.h"

// Q2_K to Q6_K, IQ4_XS and TQ2_0. Where 32 bytes hold several groups, each group's codes have the same bits
// of all of them.

namespace coterie::cpu::matmul::avx2 {

/// The scales and minima of Q4_K and Q5_K: ds = d sc, ms = -(dmin mn), exact.
COTERIE_INLINE void set_six_bit_scales(const std::byte* block, const ChunkActivation& x, ChunkTerms& terms) {
    const std::uint64_t low = eight_bytes_at(block + 4);
    const std::uint32_t high = four_bytes_at(block + 12);
    constexpr std::uint32_t kSix = 0x3f3f3f3f;
    constexpr std::uint32_t kFour = 0x0f0f0f0f;
    constexpr std::uint32_t kTop = 0x30303030;
    const auto first = static_cast<std::uint32_t>(low);
    const auto second = static_cast<std::uint32_t>(low >> 32);
    const std::uint64_t scales_high = (high & kFour) | (first >> 2 & kTop);
    const std::uint64_t minima_high = (high >> 4 & kFour) | (second >> 2 & kTop);
    terms.ds = multiply(every_float(half_at(block)), floats_of((first & kSix) | scales_high << 32));
    terms.minima = multiply(every_float(-half_at(block + 2)), floats_of((second & kSix) | minima_high << 32));
    terms.minimum_scales = load(x.scaled_sums);
}

struct RowQ4_K {
    static constexpr std::int64_t kChunkBytes = 144;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const Int packed = load_bytes(block + 16 + 32 * i);
            words[2 * i] = products(bits_and(packed, every_byte(15)), x.quants + 64 * i);
            words[2 * i + 1] =
                products(bits_and(words_right<4>(packed), every_byte(15)), x.quants + 64 * i + 32);
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<15>(words);
        set_six_bit_scales(block, x, terms);
        return terms;
    }
};

struct RowQ5_K {
    static constexpr std::int64_t kChunkBytes = 176;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        Int words[8];
        Int fifth = load_bytes(block + 16);  // bit g of each byte belongs to group g
        COTERIE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const Int packed = load_bytes(block + 48 + 32 * i);
            const Int even = bits_and(words_left<4>(fifth), every_byte(16));
            const Int odd = bits_and(words_left<3>(fifth), every_byte(16));
            words[2 * i] = products(bits_or(bits_and(packed, every_byte(15)), even), x.quants + 64 * i);
            words[2 * i + 1] = products(bits_or(bits_and(words_right<4>(packed), every_byte(15)), odd),
                                        x.quants + 64 * i + 32);
            fifth = words_right<2>(fifth);
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<31>(words);
        set_six_bit_scales(block, x, terms);
        return terms;
    }
};

struct RowQ6_K {
    static constexpr std::int64_t kChunkBytes = 210;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const Int scales = words_of(load_16(block + 192));
        const Int nibble = every_byte(15);
        const Int top_bits = every_byte(0x30);
        Int words[8];
        COTERIE_UNROLL
        for (int h = 0; h < 2; ++h) {
            const Int low = load_bytes(block + 64 * h);
            const Int high = load_bytes(block + 64 * h + 32);
            const Int top = load_bytes(block + 128 + 32 * h);
            const std::int8_t* q = x.quants + 128 * h;
            words[4 * h] =
                products(bits_or(bits_and(low, nibble), bits_and(words_left<4>(top), top_bits)), q);
            words[4 * h + 1] =
                products(bits_or(bits_and(high, nibble), bits_and(words_left<2>(top), top_bits)), q + 32);
            words[4 * h + 2] =
                products(bits_or(bits_and(words_right<4>(low), nibble), bits_and(top, top_bits)), q + 64);
            words[4 * h + 3] = products(
                bits_or(bits_and(words_right<4>(high), nibble), bits_and(words_right<2>(top), top_bits)),
                q + 96);
        }
        // Codes are stored with 32 added.
        const Int added = lanes_left<5>(dot_words(scales, load_bytes(x.half_sums)));
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<63>(words, HalfFactors::of(scales)), added);
        terms.ds = every_float(half_at(block + 208));
        return terms;
    }
};

struct RowQ2_K {
    static constexpr std::int64_t kChunkBytes = 84;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const Int two = every_byte(3);
        Int words[8];
        COTERIE_UNROLL
        for (int h = 0; h < 2; ++h) {
            const Int packed = load_bytes(block + 16 + 32 * h);
            const std::int8_t* q = x.quants + 128 * h;
            words[4 * h] = products(bits_and(packed, two), q);
            words[4 * h + 1] = products(bits_and(words_right<2>(packed), two), q + 32);
            words[4 * h + 2] = products(bits_and(words_right<4>(packed), two), q + 64);
            words[4 * h + 3] = products(bits_and(words_right<6>(packed), two), q + 96);
        }
        const __m128i nibbles = load_16(block);
        const __m128i mask = _mm_set1_epi8(15);
        const Int scales = words_of(_mm_and_si128(nibbles, mask));
        const Int minima = words_of(_mm_and_si128(_mm_srli_epi16(nibbles, 4), mask));
        ChunkTerms terms;
        terms.sums = sums_of_eight<3>(words, HalfFactors::of(scales));
        terms.ds = every_float(half_at(block + 80));
        terms.minima = to_float(dot_words(minima, load_bytes(x.half_sums)));
        terms.minimum_scales = multiply(every_float(-half_at(block + 82)), load(x.scales));
        return terms;
    }
};

struct RowQ3_K {
    static constexpr std::int64_t kChunkBytes = 110;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const Int two = every_byte(3);
        const Int third = every_byte(4);
        Int high = load_bytes(block);  // bit g of each byte belongs to group g
        Int words[8];
        COTERIE_UNROLL
        for (int h = 0; h < 2; ++h) {
            const Int packed = load_bytes(block + 32 + 32 * h);
            const std::int8_t* q = x.quants + 128 * h;
            words[4 * h] = products(bits_or(bits_and(packed, two), bits_and(words_left<2>(high), third)), q);
            words[4 * h + 1] = products(
                bits_or(bits_and(words_right<2>(packed), two), bits_and(words_left<1>(high), third)), q + 32);
            words[4 * h + 2] =
                products(bits_or(bits_and(words_right<4>(packed), two), bits_and(high, third)), q + 64);
            words[4 * h + 3] = products(
                bits_or(bits_and(words_right<6>(packed), two), bits_and(words_right<1>(high), third)),
                q + 96);
            high = words_right<4>(high);
        }
        const Int scales = words_of(unpack_scales(block + 96));
        // Codes are stored with 4 added.
        const Int added = lanes_left<2>(dot_words(scales, load_bytes(x.half_sums)));
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<7>(words, HalfFactors::of(scales)), added);
        terms.ds = every_float(half_at(block + 108));
        return terms;
    }

  private:
    /// Sixteen six-bit scales less 32: their low nibbles in eight bytes, their top bits in four.
    COTERIE_INLINE static __m128i unpack_scales(const std::byte* at) {
        constexpr std::uint64_t kNibbles = 0x0f0f0f0f0f0f0f0f;
        constexpr std::uint64_t kTop = 0x3030303030303030;
        const std::uint64_t low = eight_bytes_at(at);
        const std::uint64_t tops = four_bytes_at(at + 8);
        const std::uint64_t first = (low & kNibbles) | ((tops << 4 | tops << 34) & kTop);
        const std::uint64_t second = (low >> 4 & kNibbles) | ((tops | tops << 30) & kTop);
        const __m128i scales = _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first));
        return _mm_sub_epi8(scales, _mm_set1_epi8(32));
    }
};

struct RowTQ2_0 {
    static constexpr std::int64_t kChunkBytes = 66;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const Int two = every_byte(3);
        Int words[8];
        COTERIE_UNROLL
        for (int h = 0; h < 2; ++h) {
            const Int packed = load_bytes(block + 32 * h);
            const std::int8_t* q = x.quants + 128 * h;
            words[4 * h] = products(bits_and(packed, two), q);
            words[4 * h + 1] = products(bits_and(words_right<2>(packed), two), q + 32);
            words[4 * h + 2] = products(bits_and(words_right<4>(packed), two), q + 64);
            words[4 * h + 3] = products(bits_and(words_right<6>(packed), two), q + 96);
        }
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<3>(words), x.offset_sums(1));
        terms.ds = every_float(half_at(block + 64));
        return terms;
    }
};

}  // namespace coterie::cpu::matmul::avx2
