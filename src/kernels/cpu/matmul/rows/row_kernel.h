#pragma once

#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/rows/group_sums.h"

// Products with one token or very few: a row at a time, as it lies in memory. So few tokens need each code
// too rarely to pay for the transposition of a strip, and a single stream is what prefetchers follow best.
// The law's four accumulators are the lanes of one vector, which meets groups 0 to 3 of a chunk, then 4 to 7.

namespace coterie::cpu::matmul::avx2 {

inline constexpr int kChunkGroups = 8;
inline constexpr int kChunkValues = 256;

/// How far ahead of its position a row's memory is fetched: hides the memory's latency behind about 300
/// cycles of work.
inline constexpr std::int64_t kRowPrefetchBytes = 2048;

/// Where a chunk of 256 values meets its activations.
struct ChunkActivation {
    const std::int8_t* quants;
    const std::int16_t* half_sums;
    const float* scales;
    const float* scaled_sums;

    COTERIE_INLINE ChunkActivation(const ActivationRow& row, std::int64_t chunk)
        : quants(row.quants + chunk * kChunkValues),
          half_sums(row.half_sums + chunk * 2 * kChunkGroups),
          scales(row.scales + chunk * kChunkGroups),
          scaled_sums(row.scaled_sums + chunk * kChunkGroups) {}

    /// `offset` times the sum of each group's activations.
    COTERIE_INLINE Int offset_sums(int offset) const {
        return dot_words(load_bytes(half_sums), every_word(offset));
    }
};

/// What a chunk brings to the updates by its eight groups: acc = fma(sums, ds * scale, acc), then, where the
/// type has minima, acc = fma(minima, minimum_scales, acc).
struct ChunkTerms {
    Int sums;  ///< the exact integers I
    Float ds;
    Float minima;
    Float minimum_scales;
};

COTERIE_INLINE float half_at(const std::byte* at) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

/// Eight unsigned bytes as floats.
COTERIE_INLINE Float floats_of(std::uint64_t bytes) {
    return to_float(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
}

COTERIE_INLINE std::uint64_t eight_bytes_at(const std::byte* at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
}
COTERIE_INLINE std::uint32_t four_bytes_at(const std::byte* at) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

COTERIE_INLINE int word_at(const std::byte* at) {
    std::uint16_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

COTERIE_INLINE __m128 low_lanes(Float v) { return _mm256_castps256_ps128(v); }
COTERIE_INLINE __m128 high_lanes(Float v) { return _mm256_extractf128_ps(v, 1); }

/// A row's accumulators, in the law's order.
template <bool kHasMinimum>
class RowSum {
  public:
    COTERIE_INLINE void add_chunk(const ChunkTerms& terms, const float* activation_scales) {
        const Float sums = to_float(terms.sums);
        const Float scales = multiply(terms.ds, load(activation_scales));
        add_groups(low_lanes(sums), low_lanes(scales));
        if constexpr (kHasMinimum) add_groups(low_lanes(terms.minima), low_lanes(terms.minimum_scales));
        add_groups(high_lanes(sums), high_lanes(scales));
        if constexpr (kHasMinimum) add_groups(high_lanes(terms.minima), high_lanes(terms.minimum_scales));
    }

    COTERIE_INLINE float total() const {
        alignas(16) float lanes[kAccumulators];
        _mm_store_ps(lanes, accumulators_);
        float result = 0.0f;
        for (const float lane : lanes) result += lane;
        return result;
    }

  private:
    COTERIE_INLINE void add_groups(__m128 a, __m128 b) { accumulators_ = _mm_fmadd_ps(a, b, accumulators_); }

    __m128 accumulators_ = _mm_setzero_ps();
};

/// The groups after the last whole chunk, filled up with zeros: those leave the sums as they are.
struct PaddedChunk {
    alignas(32) std::byte weights[kChunkGroups * 64] = {};
    alignas(32) std::int8_t quants[kChunkValues] = {};
    alignas(32) std::int16_t half_sums[2 * kChunkGroups] = {};
    alignas(32) float scales[kChunkGroups] = {};
    alignas(32) float scaled_sums[kChunkGroups] = {};
    ActivationRow row{kChunkValues, nullptr, quants, scales, scaled_sums, half_sums};

    PaddedChunk(const std::byte* from, std::int64_t bytes, const ActivationRow& x, std::int64_t first,
                std::int64_t groups) {
        const auto count = static_cast<std::size_t>(groups);
        std::memcpy(weights, from, static_cast<std::size_t>(bytes));
        std::memcpy(quants, x.quants + first * kGroupValues, count * kGroupValues);
        std::memcpy(half_sums, x.half_sums + 2 * first, count * 2 * sizeof *half_sums);
        std::memcpy(scales, x.scales + first, count * sizeof *scales);
        std::memcpy(scaled_sums, x.scaled_sums + first, count * sizeof *scaled_sums);
    }
};

/// One row times one token. A `Row` has kChunkBytes (of 256 values), kHasMinimum and
///   terms(weights, activation) -> ChunkTerms
template <class Row>
COTERIE_INLINE float multiply_row(const std::byte* row, std::int64_t groups, const ActivationRow& x) {
    RowSum<Row::kHasMinimum> sum;
    const std::int64_t chunks = groups / kChunkGroups;
    for (std::int64_t c = 0; c < chunks; ++c, row += Row::kChunkBytes) {
        for (std::int64_t i = 0; i < Row::kChunkBytes; i += 64) {
            _mm_prefetch(reinterpret_cast<const char*>(row) + kRowPrefetchBytes + i, _MM_HINT_T0);
        }
        const ChunkActivation activation(x, c);
        sum.add_chunk(Row::terms(row, activation), activation.scales);
    }
    if (const std::int64_t rest = groups % kChunkGroups; rest != 0) {
        const PaddedChunk last(row, rest * Row::kChunkBytes / kChunkGroups, x, chunks * kChunkGroups, rest);
        const ChunkActivation activation(last.row, 0);
        sum.add_chunk(Row::terms(last.weights, activation), activation.scales);
    }
    return sum.total();
}

/// A row's weights come from memory once, for further tokens from the first-level cache.
template <class Row>
COTERIE_KERNEL void multiply_rows_by_few(const MatmulArgs& args) {
    const std::int64_t groups = args.columns / kGroupValues;
    for (std::int64_t r = 0; r < args.rows; ++r) {
        for (std::int64_t t = 0; t < args.tokens; ++t) {
            args.out[t * args.out_token_stride + r] =
                multiply_row<Row>(args.weights + r * args.row_bytes, groups, args.activations[t]);
        }
    }
}

}  // namespace coterie::cpu::matmul::avx2
