#pragma once

#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/vectors_avx2.h"

// Products with one token of types with blocks of 256 values: a row at a time, as it lies in memory. One
// token needs every code once, so transposing strips for it would only cost; and a single stream from memory
// is what prefetchers follow best. The law's four accumulators are the lanes of one vector: a block's groups
// 0 to 3 meet them, then 4 to 7.

namespace coterie::cpu::matmul::avx2 {

/// What a block brings to the updates by its eight groups, in their order.
struct BlockTerms {
    Int sums;  ///< the exact integers I
    Float ds;
    Float ms;  ///< read only where the type has minima
};

/// The lanes of each of eight vectors added up: lane g belongs to vector g.
COTERIE_INLINE Int add_across(const Int* v) {
    const Int a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const Int b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return add_lanes(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

COTERIE_INLINE Int load_bytes(const void* at) { return _mm256_loadu_si256(static_cast<const Int*>(at)); }

COTERIE_INLINE float half_at(const std::byte* at) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

/// Eight unsigned bytes as floats.
COTERIE_INLINE Float floats_of(std::uint64_t bytes) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
}

/// The scales and minima of Q4_K and Q5_K: ds = d sc, ms = -(dmin mn), exact.
COTERIE_INLINE void unpack_scales(const std::byte* block, BlockTerms& terms) {
    std::uint32_t packed[3];
    std::memcpy(packed, block + 4, sizeof packed);
    constexpr std::uint32_t kSix = 0x3f3f3f3f;
    constexpr std::uint32_t kFour = 0x0f0f0f0f;
    constexpr std::uint32_t kTop = 0x30303030;
    const std::uint64_t scale_low = packed[0] & kSix;
    const std::uint64_t minimum_low = packed[1] & kSix;
    const std::uint64_t scale_high = (packed[2] & kFour) | (packed[0] >> 2 & kTop);
    const std::uint64_t minimum_high = (packed[2] >> 4 & kFour) | (packed[1] >> 2 & kTop);
    terms.ds = _mm256_mul_ps(every_float(half_at(block)), floats_of(scale_low | scale_high << 32));
    terms.ms = _mm256_mul_ps(every_float(-half_at(block + 2)), floats_of(minimum_low | minimum_high << 32));
}

struct RowQ4_K {
    static constexpr std::int64_t kBlockBytes = 144;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static BlockTerms block(const std::byte* block, const std::int8_t* q,
                                           const std::int16_t*) {
        Int sums[8];
        COTERIE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const Int packed = load_bytes(block + 16 + 32 * i);
            const Int low = bits_and(packed, every_byte(15));
            const Int high = bits_and(words_right<4>(packed), every_byte(15));
            sums[2 * i] = _mm256_madd_epi16(_mm256_maddubs_epi16(low, load_bytes(q + 64 * i)), every_word(1));
            sums[2 * i + 1] =
                _mm256_madd_epi16(_mm256_maddubs_epi16(high, load_bytes(q + 64 * i + 32)), every_word(1));
        }
        BlockTerms terms;
        terms.sums = add_across(sums);
        unpack_scales(block, terms);
        return terms;
    }
};

struct RowQ5_K {
    static constexpr std::int64_t kBlockBytes = 176;
    static constexpr bool kHasMinimum = true;

    COTERIE_INLINE static BlockTerms block(const std::byte* block, const std::int8_t* q,
                                           const std::int16_t*) {
        Int sums[8];
        Int fifth = load_bytes(block + 16);  // bit g of each byte belongs to group g
        COTERIE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const Int packed = load_bytes(block + 48 + 32 * i);
            const Int even = bits_and(words_left<4>(fifth), every_byte(16));
            const Int odd = bits_and(words_left<3>(fifth), every_byte(16));
            const Int low = bits_or(bits_and(packed, every_byte(15)), even);
            const Int high = bits_or(bits_and(words_right<4>(packed), every_byte(15)), odd);
            sums[2 * i] = _mm256_madd_epi16(_mm256_maddubs_epi16(low, load_bytes(q + 64 * i)), every_word(1));
            sums[2 * i + 1] =
                _mm256_madd_epi16(_mm256_maddubs_epi16(high, load_bytes(q + 64 * i + 32)), every_word(1));
            fifth = words_right<2>(fifth);
        }
        BlockTerms terms;
        terms.sums = add_across(sums);
        unpack_scales(block, terms);
        return terms;
    }
};

struct RowQ6_K {
    static constexpr std::int64_t kBlockBytes = 210;
    static constexpr bool kHasMinimum = false;

    COTERIE_INLINE static BlockTerms block(const std::byte* block, const std::int8_t* q,
                                           const std::int16_t* half_sums) {
        const Int scales =
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192)));
        Int sums[8];
        COTERIE_UNROLL
        for (int h = 0; h < 2; ++h) {
            const Int low = load_bytes(block + 64 * h);
            const Int high = load_bytes(block + 64 * h + 32);
            const Int top = load_bytes(block + 128 + 32 * h);
            // Both 128-bit lanes hold the scales of this half's four groups.
            const Int half =
                h == 0 ? _mm256_permute4x64_epi64(scales, 0x44) : _mm256_permute4x64_epi64(scales, 0xee);
            const Int mask = every_byte(15);
            const Int two = every_byte(0x30);
            const Int codes[4] = {
                bits_or(bits_and(low, mask), bits_and(words_left<4>(top), two)),
                bits_or(bits_and(high, mask), bits_and(words_left<2>(top), two)),
                bits_or(bits_and(words_right<4>(low), mask), bits_and(top, two)),
                bits_or(bits_and(words_right<4>(high), mask), bits_and(words_right<2>(top), two)),
            };
            COTERIE_UNROLL
            for (int t = 0; t < 4; ++t) {
                const Int products = _mm256_maddubs_epi16(codes[t], load_bytes(q + 128 * h + 32 * t));
                // The group's first 16 values are the low lane: its words take one scale, the high lane's the
                // next.
                const auto first = static_cast<char>(4 * t);
                const auto second = static_cast<char>(4 * t + 2);
                const Int spread = _mm256_shuffle_epi8(
                    half, _mm256_setr_epi8(first, first + 1, first, first + 1, first, first + 1, first,
                                           first + 1, first, first + 1, first, first + 1, first, first + 1,
                                           first, first + 1, second, second + 1, second, second + 1, second,
                                           second + 1, second, second + 1, second, second + 1, second,
                                           second + 1, second, second + 1, second, second + 1));
                sums[4 * h + t] = _mm256_madd_epi16(products, spread);
            }
        }
        // Codes are stored with 32 added: take 32 (sc0 S0 + sc1 S1) off each group.
        const Int added = _mm256_slli_epi32(_mm256_madd_epi16(scales, load_bytes(half_sums)), 5);
        BlockTerms terms;
        terms.sums = _mm256_sub_epi32(add_across(sums), added);
        terms.ds = every_float(half_at(block + 208));
        terms.ms = zero_float();
        return terms;
    }
};

COTERIE_INLINE __m128 low_lanes(Float v) { return _mm256_castps256_ps128(v); }
COTERIE_INLINE __m128 high_lanes(Float v) { return _mm256_extractf128_ps(v, 1); }

/// One row times one token, by the law.
template <class Row>
COTERIE_INLINE float multiply_row(const std::byte* row, std::int64_t blocks, const ActivationRow& x) {
    // Two kilobytes ahead hide the memory's latency behind about 300 cycles of work.
    constexpr std::int64_t kAhead = 2048;
    __m128 accumulators = _mm_setzero_ps();
    for (std::int64_t b = 0; b < blocks; ++b, row += Row::kBlockBytes) {
        for (std::int64_t i = 0; i < Row::kBlockBytes; i += 64) {
            _mm_prefetch(reinterpret_cast<const char*>(row) + kAhead + i, _MM_HINT_T0);
        }
        const BlockTerms terms = Row::block(row, x.quants + 256 * b, x.half_sums + 16 * b);
        const Float sums = _mm256_cvtepi32_ps(terms.sums);
        const Float scales = _mm256_mul_ps(terms.ds, _mm256_loadu_ps(x.scales + 8 * b));
        const Float minima = _mm256_loadu_ps(x.scaled_sums + 8 * b);
        accumulators = _mm_fmadd_ps(low_lanes(sums), low_lanes(scales), accumulators);
        if constexpr (Row::kHasMinimum) {
            accumulators = _mm_fmadd_ps(low_lanes(terms.ms), low_lanes(minima), accumulators);
        }
        accumulators = _mm_fmadd_ps(high_lanes(sums), high_lanes(scales), accumulators);
        if constexpr (Row::kHasMinimum) {
            accumulators = _mm_fmadd_ps(high_lanes(terms.ms), high_lanes(minima), accumulators);
        }
    }
    alignas(16) float lanes[kAccumulators];
    _mm_store_ps(lanes, accumulators);
    float result = 0.0f;
    for (const float lane : lanes) result += lane;
    return result;
}

template <class Row>
COTERIE_KERNEL void multiply_one_token(const MatmulArgs& args) {
    const std::int64_t blocks = args.columns / 256;
    for (std::int64_t r = 0; r < args.rows; ++r) {
        args.out[r] = multiply_row<Row>(args.weights + r * args.row_bytes, blocks, args.activations[0]);
    }
}

}  // namespace coterie::cpu::matmul::avx2
