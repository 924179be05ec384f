#pragma once

#include "kernels/cpu/matmul/rows/row_kernel.h"
#include "kernels/cpu/matmul/sources/sign_bytes.h"
#include "quant/codebooks/codebooks.h"

// The IQ1, IQ2 and IQ3 types. Looking up entries is most of their work: 32 (IQ3: 64) loads for 256 values,
// each after the load of its index. So indices come from memory, put together in vectors for the whole block
// where the block has them in parts; signs are applied to the activations, and all other bits are unpacked
// for the whole block at once.

namespace coterie::cpu::matmul::avx2 {

COTERIE_INLINE __m128i two_entries_of_8(const std::int8_t* table, std::size_t first, std::size_t second) {
    const auto* low = reinterpret_cast<const double*>(table + 8 * first);
    const auto* high = reinterpret_cast<const double*>(table + 8 * second);
    return _mm_castpd_si128(_mm_loadh_pd(_mm_load_sd(low), high));
}

/// Four entries of eight bytes.
COTERIE_INLINE Int four_entries_of_8(const std::int8_t* table, std::size_t i0, std::size_t i1, std::size_t i2,
                                     std::size_t i3) {
    return join(two_entries_of_8(table, i0, i1), two_entries_of_8(table, i2, i3));
}

/// A block's indices, unpacked in vectors and read one by one.
template <int kCount>
struct Indices {
    alignas(32) std::uint16_t at[kCount];

    COTERIE_INLINE void set(int first, Int words) {
        _mm256_store_si256(reinterpret_cast<Int*>(at + first), words);
        asm("" : "+m"(at));  // from memory an index is one load, out of a register two instructions
    }
    COTERIE_INLINE Int four_entries_of_8(const std::int8_t* table, int first) const {
        return avx2::four_entries_of_8(table, at[first], at[first + 1], at[first + 2], at[first + 3]);
    }
};

/// Sixteen bytes as words.
COTERIE_INLINE Int words_of_bytes(const std::byte* at) { return _mm256_cvtepu8_epi16(load_16(at)); }

/// Each of four words four times.
COTERIE_INLINE Int four_times_each(const std::byte* words) {
    return shuffle_bytes(_mm256_set1_epi64x(static_cast<long long>(eight_bytes_at(words))),
                         _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4,
                                          5, 6, 7, 6, 7, 6, 7, 6, 7));
}

COTERIE_INLINE Int words_times(Int words, Int factors) { return _mm256_mullo_epi16(words, factors); }

/// The signs of a block's 256 values; each group reads its 32 from here.
struct SignBytes {
    alignas(32) std::uint32_t groups[8];

    COTERIE_INLINE explicit SignBytes(Int bytes) {
        _mm256_store_si256(reinterpret_cast<Int*>(groups), bytes);
        asm("" : "+m"(groups));  // a broadcast from memory is one instruction, from a register three
    }
};

/// The products of unsigned codes with activations that are negated where a bit of `signs` is set.
COTERIE_INLINE Int products_with_signs(Int codes, const std::int8_t* q, std::uint32_t signs) {
    const Int bytes =
        shuffle_bytes(every_lane(static_cast<int>(signs)),
                      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const Int bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    const Int negative = _mm256_cmpeq_epi8(bits_and(bytes, bit), bit);
    return _mm256_maddubs_epi16(codes, _mm256_sign_epi8(load_bytes(q), bits_or(negative, every_byte(1))));
}

/// 2 s + 1 of the top four bits of each lane.
COTERIE_INLINE Float odd_scales_of_top_bits(Int lanes) {
    return to_float(bits_or(bits_and(lanes_right<27>(lanes), every_lane(30)), every_lane(1)));
}

inline constexpr int kLargestIq2 = 43;
inline constexpr int kLargestIq3Xxs = 62;
inline constexpr int kLargestIq3S = 15;

COTERIE_INLINE std::size_t index_at(const std::byte* at) { return std::to_integer<std::size_t>(*at); }

struct RowIQ2_XXS {
    static constexpr std::int64_t kChunkBytes = 66;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq2XxsCodebook[0].data();
        // Each group's second lane: signs and scale.
        const Int pick = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
        const Int first = _mm256_permutevar8x32_epi32(load_bytes(block + 2), pick);
        const Int second = _mm256_permutevar8x32_epi32(load_bytes(block + 34), pick);
        const Int lanes = _mm256_blend_epi32(first, second, 0xf0);
        const SignBytes signs(four_sign_bytes(lanes));
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            const std::byte* at = block + 2 + 8 * g;
            const Int codes =
                four_entries_of_8(table, index_at(at), index_at(at + 1), index_at(at + 2), index_at(at + 3));
            words[g] = products_with_signs(codes, x.quants + 32 * g, signs.groups[g]);
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq2>(words);
        terms.ds = multiply(every_float(half_at(block) * 0.125f), odd_scales_of_top_bits(lanes));
        return terms;
    }
};

/// 2 s + 1 of sixteen nibbles, as words.
COTERIE_INLINE Int odd_scales_of_nibbles(const std::byte* at) {
    const Int bytes = _mm256_cvtepu8_epi16(_mm_loadu_si64(at));
    const Int both = bits_or(bytes, words_left<4>(bytes));  // low nibble in byte 0, high nibble in byte 1
    const Int scales = bits_and(both, every_byte(15));
    const Int odd = bits_or(add_bytes(scales, scales), every_byte(1));
    return words_of(_mm256_castsi256_si128(odd));
}

struct RowIQ2_XS {
    static constexpr std::int64_t kChunkBytes = 74;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq2XsCodebook[0].data();
        const SignBytes signs(sign_bytes(block + 2));
        Indices<32> indices;
        indices.set(0, bits_and(load_bytes(block + 2), every_word(511)));
        indices.set(16, bits_and(load_bytes(block + 34), every_word(511)));
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            words[g] = products_with_signs(indices.four_entries_of_8(table, 4 * g), x.quants + 32 * g,
                                           signs.groups[g]);
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq2>(words, HalfFactors::of(odd_scales_of_nibbles(block + 66)));
        terms.ds = every_float(half_at(block) * 0.125f);
        return terms;
    }

  private:
    /// The top seven bits of 32 words, completed.
    COTERIE_INLINE static Int sign_bytes(const std::byte* words) {
        const Int packed =
            _mm256_packus_epi16(words_right<9>(load_bytes(words)), words_right<9>(load_bytes(words + 32)));
        return even_sign_bytes(_mm256_permute4x64_epi64(packed, 0b11011000));
    }
};

struct RowIQ2_S {
    static constexpr std::int64_t kChunkBytes = 82;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq2SCodebook[0].data();
        Indices<32> indices;
        set_sixteen(indices, 0, block);
        set_sixteen(indices, 16, block);
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            words[g] = products_with_signs(indices.four_entries_of_8(table, 4 * g), x.quants + 32 * g,
                                           four_bytes_at(block + 34 + 4 * g));
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq2>(words, HalfFactors::of(odd_scales_of_nibbles(block + 74)));
        terms.ds = every_float(half_at(block) * 0.125f);
        return terms;
    }

  private:
    /// Low bytes, and two top bits of four indices in a byte.
    COTERIE_INLINE static void set_sixteen(Indices<32>& indices, int first, const std::byte* block) {
        const Int tops =
            shuffle_bytes(every_lane(static_cast<int>(four_bytes_at(block + 66 + first / 4))),
                          _mm256_setr_epi8(0, -1, 0, -1, 0, -1, 0, -1, 1, -1, 1, -1, 1, -1, 1, -1, 2, -1, 2,
                                           -1, 2, -1, 2, -1, 3, -1, 3, -1, 3, -1, 3, -1));
        const Int up = _mm256_setr_epi16(256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4, 256, 64, 16, 4);
        indices.set(first, bits_or(words_of_bytes(block + 2 + first),
                                   bits_and(words_times(tops, up), every_word(0x300))));
    }
};

/// Sizes, so that the processor's addressing multiplies.
template <class Index>
COTERIE_INLINE __m128i two_entries_of_4(const std::int8_t* table, const Index* index) {
    const std::size_t first = index[0];
    const std::size_t second = index[1];
    int entry = 0;
    std::memcpy(&entry, table + 4 * second, sizeof entry);
    return _mm_insert_epi32(_mm_loadu_si32(table + 4 * first), entry, 1);
}

/// Eight entries of four bytes.
template <class Index>
COTERIE_INLINE Int eight_entries_of_4(const std::int8_t* table, const Index* index) {
    return join(_mm_unpacklo_epi64(two_entries_of_4(table, index), two_entries_of_4(table, index + 2)),
                _mm_unpacklo_epi64(two_entries_of_4(table, index + 4), two_entries_of_4(table, index + 6)));
}

struct RowIQ3_XXS {
    static constexpr std::int64_t kChunkBytes = 98;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq3XxsCodebook[0].data();
        const Int lanes = load_bytes(block + 66);
        const SignBytes signs(four_sign_bytes(lanes));
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            const auto* index = reinterpret_cast<const std::uint8_t*>(block + 2 + 8 * g);
            words[g] =
                products_with_signs(eight_entries_of_4(table, index), x.quants + 32 * g, signs.groups[g]);
        }
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq3Xxs>(words);
        terms.ds = multiply(every_float(half_at(block) * 0.25f), odd_scales_of_top_bits(lanes));
        return terms;
    }
};

struct RowIQ3_S {
    static constexpr std::int64_t kChunkBytes = 110;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq3SCodebook[0].data();
        Indices<64> indices;
        COTERIE_UNROLL
        for (int i = 0; i < 4; ++i) set_sixteen(indices, 16 * i, block);
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            words[g] = products_with_signs(eight_entries_of_4(table, indices.at + 8 * g), x.quants + 32 * g,
                                           four_bytes_at(block + 74 + 4 * g));
        }
        const Int nibbles =
            bits_and(_mm256_srlv_epi32(every_lane(static_cast<int>(four_bytes_at(block + 106))),
                                       _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)),
                     every_lane(15));
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq3S>(words);
        terms.ds =
            multiply(every_float(half_at(block)), to_float(bits_or(lanes_left<1>(nibbles), every_lane(1))));
        return terms;
    }

  private:
    /// Low bytes, and the top bits of eight indices in a byte.
    COTERIE_INLINE static void set_sixteen(Indices<64>& indices, int first, const std::byte* block) {
        const Int both = every_word(word_at(block + 66 + first / 8));
        const Int bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
                                          16384, static_cast<short>(0x8000));
        const Int set = _mm256_cmpeq_epi16(bits_and(both, bit), bit);
        indices.set(first, bits_or(words_of_bytes(block + 2 + first), bits_and(set, every_word(0x100))));
    }
};

/// IQ1 codes count eighths: 8 * entry + shift, with entries and shifts of -1, 0 and 1. `shifts` holds 9 +
/// shift in each byte, so that the codes are unsigned.
COTERIE_INLINE Int eighths(Int entries, Int shifts) {
    return add_bytes(bits_and(words_left<3>(entries), every_byte(0xf8)), shifts);
}

inline constexpr int kEighths = 9;
inline constexpr int kLargestEighths = 18;

struct RowIQ1_S {
    static constexpr std::int64_t kChunkBytes = 50;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq1Codebook[0].data();
        Indices<32> indices;
        set_sixteen(indices, 0, block);
        set_sixteen(indices, 16, block);
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            words[g] = products(add_bytes(indices.four_entries_of_8(table, 4 * g), every_byte(1)),
                                x.quants + 32 * g);
        }
        // With codes of entry + 1: I = 8 sum + (shift - 8) S; the shift is 1, or -1 where the top bit is set.
        const Int high = _mm256_cvtepu16_epi32(load_16(block + 34));
        const Int factor = subtract_lanes(every_lane(-7), bits_and(lanes_right<14>(high), every_lane(2)));
        ChunkTerms terms;
        terms.sums =
            add_lanes(lanes_left<3>(sums_of_eight<2>(words)), _mm256_mullo_epi32(factor, x.offset_sums(1)));
        const Int scale = bits_or(bits_and(lanes_right<11>(high), every_lane(14)), every_lane(1));
        terms.ds = multiply(every_float(half_at(block) * 0.125f), to_float(scale));
        return terms;
    }

  private:
    /// Low bytes, and three top bits of four indices in a word.
    COTERIE_INLINE static void set_sixteen(Indices<32>& indices, int first, const std::byte* block) {
        const Int up = _mm256_setr_epi16(512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1);
        const Int tops = words_right<1>(words_times(four_times_each(block + 34 + first / 2), up));
        indices.set(first, bits_or(words_of_bytes(block + 2 + first), bits_and(tops, every_word(0x700))));
    }
};

struct RowIQ1_M {
    static constexpr std::int64_t kChunkBytes = 56;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        const std::int8_t* table = blocks::kIq1Codebook[0].data();
        Indices<32> indices;
        set_sixteen(indices, 0, block);
        set_sixteen(indices, 16, block);
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            const auto nibbles = static_cast<std::uint32_t>(word_at(block + 32 + 2 * g));
            words[g] = products(eighths(indices.four_entries_of_8(table, 4 * g), shifts(nibbles)),
                                x.quants + 32 * g);
        }
        const std::uint64_t packed = eight_bytes_at(block + 48);
        const Int scales = odd_scales(block + 48);
        const Int offset =
            dot_words(_mm256_mullo_epi16(scales, every_word(kEighths)), load_bytes(x.half_sums));
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<kLargestEighths>(words, HalfFactors::of(scales)), offset);
        terms.ds = every_float(scale_of(packed) * 0.125f);
        return terms;
    }

  private:
    /// Low bytes, and three top bits of an index in each nibble.
    COTERIE_INLINE static void set_sixteen(Indices<32>& indices, int first, const std::byte* block) {
        const Int up =
            _mm256_setr_epi16(4096, 256, 16, 1, 4096, 256, 16, 1, 4096, 256, 16, 1, 4096, 256, 16, 1);
        const Int tops = words_right<4>(words_times(four_times_each(block + 32 + first / 2), up));
        indices.set(first, bits_or(words_of_bytes(block + first), bits_and(tops, every_word(0x700))));
    }

    /// 9 + shift of each eight values: bit 3 of a nibble is set for -1.
    COTERIE_INLINE static Int shifts(std::uint32_t nibbles) {
        const Int bytes = shuffle_bytes(every_lane(static_cast<int>(nibbles)),
                                        _mm256_setr_epi64x(0, 0, 0x0101010101010101, 0x0101010101010101));
        const Int bit = _mm256_setr_epi64x(0x0808080808080808, static_cast<long long>(0x8080808080808080),
                                           0x0808080808080808, static_cast<long long>(0x8080808080808080));
        const Int negative = _mm256_cmpeq_epi8(bits_and(bytes, bit), bit);
        return add_bytes(every_byte(kEighths + 1), add_bytes(negative, negative));
    }

    /// 2 s + 1 of sixteen three-bit scales, four in each 16 bits, as words.
    COTERIE_INLINE static Int odd_scales(const std::byte* scales) {
        // Scale k of its word moves to bits 9 to 11, then down to 1 to 3.
        const Int up = _mm256_setr_epi16(512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1, 512, 64, 8, 1);
        const Int moved = words_right<8>(words_times(four_times_each(scales), up));
        return bits_or(bits_and(moved, every_word(14)), every_word(1));
    }

    /// A quarter of d's bits is in the top four bits of each 16.
    COTERIE_INLINE static float scale_of(std::uint64_t packed) {
        const std::uint64_t bits = (packed >> 12 & 0x000f) | (packed >> 24 & 0x00f0) |
                                   (packed >> 36 & 0x0f00) | (packed >> 48 & 0xf000);
        return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(bits))));
    }
};

}  // namespace coterie::cpu::matmul::avx2
