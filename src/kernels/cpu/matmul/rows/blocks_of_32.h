#pragma once

#include "kernels/cpu/matmul/rows/row_kernel.h"
#include "kernels/cpu/matmul/sources/bits.h"

// Types with blocks of one group, and IQ4_XS, whose groups have their layout. Where 16 bytes hold 32 nibbles,
// the low ones are the first 16 values.

namespace coterie::cpu::matmul::avx2 {

/// The words at `at`, `at + kStride`, ...
template <int kStride>
COTERIE_INLINE __m128i four_words(const std::byte* at) {
    const __m128i one = _mm_cvtsi32_si128(word_at(at));
    const __m128i two = _mm_insert_epi16(one, word_at(at + kStride), 1);
    const __m128i three = _mm_insert_epi16(two, word_at(at + 2 * kStride), 2);
    return _mm_insert_epi16(three, word_at(at + 3 * kStride), 3);
}

/// The binary16 numbers at `at`, `at + kStride`, ...
template <int kStride>
COTERIE_INLINE Float eight_halves(const std::byte* at) {
    return _mm256_cvtph_ps(
        _mm_unpacklo_epi64(four_words<kStride>(at), four_words<kStride>(at + 4 * kStride)));
}

/// 32 nibbles as bytes, in order.
COTERIE_INLINE Int thirty_two_nibbles(const std::byte* at) {
    const __m128i packed = load_16(at);
    return bits_and(join(packed, _mm_srli_epi16(packed, 4)), every_byte(15));
}

/// 16 where the value's bit is set.
COTERIE_INLINE Int sixteens_of_bits(const std::byte* at) {
    const Int bytes =
        shuffle_bytes(_mm256_set1_epi32(static_cast<int>(four_bytes_at(at))),
                      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const Int bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    return bits_and(_mm256_cmpeq_epi8(bits_and(bytes, bit), bit), every_byte(16));
}

struct RowQ4_0 {
    static constexpr std::int64_t kChunkBytes = 8 * 18;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g)
            words[g] = products(thirty_two_nibbles(blocks + 18 * g + 2), x.quants + 32 * g);
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<15>(words), x.offset_sums(8));
        terms.ds = eight_halves<18>(blocks);
        return terms;
    }
};

struct RowQ4_1 {
    static constexpr std::int64_t kChunkBytes = 8 * 20;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g)
            words[g] = products(thirty_two_nibbles(blocks + 20 * g + 4), x.quants + 32 * g);
        return {sums_of_eight<15>(words), eight_halves<20>(blocks), eight_halves<20>(blocks + 2),
                load(x.scaled_sums)};
    }
};

struct RowQ5_0 {
    static constexpr std::int64_t kChunkBytes = 8 * 22;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            const std::byte* block = blocks + 22 * g;
            words[g] = products(bits_or(thirty_two_nibbles(block + 6), sixteens_of_bits(block + 2)),
                                x.quants + 32 * g);
        }
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<31>(words), x.offset_sums(16));
        terms.ds = eight_halves<22>(blocks);
        return terms;
    }
};

struct RowQ5_1 {
    static constexpr std::int64_t kChunkBytes = 8 * 24;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            const std::byte* block = blocks + 24 * g;
            words[g] = products(bits_or(thirty_two_nibbles(block + 8), sixteens_of_bits(block + 4)),
                                x.quants + 32 * g);
        }
        return {sums_of_eight<31>(words), eight_halves<24>(blocks), eight_halves<24>(blocks + 2),
                load(x.scaled_sums)};
    }
};

struct RowQ8_0 {
    static constexpr std::int64_t kChunkBytes = 8 * 34;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g)
            words[g] = signed_products(load_bytes(blocks + 34 * g + 2), x.quants + 32 * g);
        ChunkTerms terms;
        terms.sums = sums_of_eight<128>(words);
        terms.ds = eight_halves<34>(blocks);
        return terms;
    }
};

COTERIE_INLINE Int iq4_products(const std::byte* nibbles, const std::int8_t* q) {
    return signed_products(shuffle_bytes(byte_table(kIq4Values), thirty_two_nibbles(nibbles)), q);
}

struct RowIQ4_NL {
    static constexpr std::int64_t kChunkBytes = 8 * 18;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) words[g] = iq4_products(blocks + 18 * g + 2, x.quants + 32 * g);
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq4Value>(words);
        terms.ds = eight_halves<18>(blocks);
        return terms;
    }
};

struct RowIQ4_XS {
    static constexpr std::int64_t kChunkBytes = 136;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* block, const ChunkActivation& x) {
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) words[g] = iq4_products(block + 8 + 16 * g, x.quants + 32 * g);
        ChunkTerms terms;
        terms.sums = sums_of_eight<kLargestIq4Value>(words);
        terms.ds = multiply(every_float(half_at(block)), to_float(scales(block)));
        return terms;
    }

  private:
    /// Eight six-bit scales less 32: nibbles in the last four bytes of the header, top bits in the two
    /// before.
    COTERIE_INLINE static Int scales(const std::byte* block) {
        std::uint16_t tops = 0;
        std::memcpy(&tops, block + 2, sizeof tops);
        const Int low = bits_and(_mm256_srlv_epi32(every_lane(static_cast<int>(four_bytes_at(block + 4))),
                                                   _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28)),
                                 every_lane(15));
        const Int high =
            bits_and(_mm256_srlv_epi32(every_lane(tops << 4), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14)),
                     every_lane(48));
        return subtract_lanes(bits_or(low, high), every_lane(32));
    }
};

struct RowMXFP4 {
    static constexpr std::int64_t kChunkBytes = 8 * 17;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static ChunkTerms terms(const std::byte* blocks, const ChunkActivation& x) {
        const Int table = byte_table(kFp4PlusTwelve);
        Int words[8];
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) {
            words[g] =
                products(shuffle_bytes(table, thirty_two_nibbles(blocks + 17 * g + 1)), x.quants + 32 * g);
        }
        ChunkTerms terms;
        terms.sums = subtract_lanes(sums_of_eight<kLargestFp4PlusTwelve>(words), x.offset_sums(12));
        terms.ds = half_of_e8m0(exponents(blocks));
        return terms;
    }

  private:
    COTERIE_INLINE static Int exponents(const std::byte* blocks) {
        std::uint64_t bytes = 0;
        COTERIE_UNROLL
        for (int g = 0; g < 8; ++g) bytes |= std::to_integer<std::uint64_t>(blocks[17 * g]) << 8 * g;
        return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)));
    }
};

}  // namespace coterie::cpu::matmul::avx2
