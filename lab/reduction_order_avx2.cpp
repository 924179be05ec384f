// AVX2 kernels of the reduction-order study: the float accumulation of each candidate order, over lanes that
// each hold a row and over one row at a time.

#include "reduction_order_avx2_types.h"

namespace coterie::lab::avx2 {
namespace {

/// Sums of lanes[0 .. count) in the order's own way; each vector holds one lane of 8 rows.
template <Order order>
AVX2_INLINE __m256 sum_lanes(__m256* lanes) {
    if constexpr (order == Order::Lanes32) {
        for (int width = 16; width > 0; width /= 2)
            for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
        return lanes[0];
    }
    __m256 total = _mm256_setzero_ps();
    for (int l = 0; l < (order == Order::Lanes4 ? 4 : 8); ++l) total += lanes[l];
    return total;
}

template <class T, Order order>
AVX2 void lane_per_row(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    constexpr int kLanes = order == Order::Lanes32  ? 32
                           : order == Order::Lanes8 ? 8
                           : order == Order::Lanes4 ? 4
                                                    : 1;
    const int blocks = x.columns / kBlockValues;
    const std::size_t stride = static_cast<std::size_t>(blocks) * block_bytes(T::kType);
    for (int r = 0; r < rows; r += 8) {
        const std::uint8_t* row = matrix + r * stride;
        __m256 lanes[kLanes];
        for (__m256& lane : lanes) lane = _mm256_setzero_ps();
        __m256 total = _mm256_setzero_ps();
        for (int b = 0; b < blocks; ++b, row += block_bytes(T::kType)) {
            prefetch(row_ahead<8>(matrix + r * stride, stride) +
                         8 * static_cast<std::size_t>(b) * block_bytes(T::kType),
                     8 * block_bytes(T::kType));
            Panel panel;
            T::read_panel(row, stride, x, b, panel);
            for (int k = 0; k < kBlockGroups; ++k) {
                const int g = 8 * b + k;
                __m256& acc = lanes[kLanes == 32 ? g % 32 : k % kLanes];
                acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(panel.sums[k]),
                                      panel.ds[k] * _mm256_set1_ps(x.scales[g]), acc);
                if constexpr (T::kType == Type::Q4_K)
                    acc = _mm256_fmadd_ps(panel.ms[k], _mm256_set1_ps(x.scaled_sums[g]), acc);
                if (order == Order::Segments && x.is_segment_end[g]) {
                    total += acc;
                    acc = _mm256_setzero_ps();
                }
            }
        }
        if constexpr (kLanes > 1) total = sum_lanes<order>(lanes);
        _mm256_storeu_ps(out + r, order == Order::Free ? lanes[0] : total);
    }
}

/// The eight lanes of `v`, added in ascending order.
AVX2_INLINE float sum_ascending(__m256 v) {
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, v);
    float total = 0.0f;
    for (float lane : lanes) total += lane;
    return total;
}

AVX2_INLINE float sum_pairwise(__m256 v) {
    __m128 sum = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
    sum += _mm_movehl_ps(sum, sum);
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

/// One block of order (d): lanes take groups 0 to 3, then 4 to 7.
AVX2_INLINE __m128 add_in_four_lanes(__m128 acc, __m256 sums, __m256 factor, __m256 ms,
                                     const float* scaled_sums) {
    acc = _mm_fmadd_ps(_mm256_castps256_ps128(sums), _mm256_castps256_ps128(factor), acc);
    if (scaled_sums != nullptr)
        acc = _mm_fmadd_ps(_mm256_castps256_ps128(ms), _mm_loadu_ps(scaled_sums), acc);
    acc = _mm_fmadd_ps(_mm256_extractf128_ps(sums, 1), _mm256_extractf128_ps(factor, 1), acc);
    if (scaled_sums != nullptr)
        acc = _mm_fmadd_ps(_mm256_extractf128_ps(ms, 1), _mm_loadu_ps(scaled_sums + 4), acc);
    return acc;
}

AVX2_INLINE float sum_ascending(__m128 v) {
    alignas(16) float lanes[4];
    _mm_store_ps(lanes, v);
    return ((0.0f + lanes[0]) + lanes[1] + lanes[2]) + lanes[3];
}

template <class T, Order order>
AVX2 void row_at_a_time(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    const int blocks = x.columns / kBlockValues;
    const std::uint8_t* p = matrix;
    for (int r = 0; r < rows; ++r) {
        __m128 four = _mm_setzero_ps();
        __m256 lanes[4] = {};
        for (int b = 0; b < blocks; ++b, p += block_bytes(T::kType)) {
            prefetch(p + kPrefetchDistance, block_bytes(T::kType));
            Block block;
            T::read_block(p, x, b, block);
            __m256i sums = fold(block.partial);
            if constexpr (T::kType == Type::Q6_K) sums = _mm256_sub_epi32(sums, block.correction);
            const __m256 values = _mm256_cvtepi32_ps(sums);
            const __m256 factor = block.ds * _mm256_loadu_ps(x.scales.data() + 8 * b);
            const float* scaled_sums = T::kType == Type::Q4_K ? x.scaled_sums.data() + 8 * b : nullptr;
            if constexpr (order == Order::Lanes4) {
                four = add_in_four_lanes(four, values, factor, block.ms, scaled_sums);
                continue;
            }
            __m256& acc = lanes[order == Order::Lanes32 ? b % 4 : 0];
            acc = _mm256_fmadd_ps(values, factor, acc);
            if (scaled_sums != nullptr) acc = _mm256_fmadd_ps(block.ms, _mm256_loadu_ps(scaled_sums), acc);
        }
        if constexpr (order == Order::Lanes4)
            out[r] = sum_ascending(four);
        else if constexpr (order == Order::Lanes32)
            out[r] = sum_pairwise((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
        else
            out[r] = sum_ascending(lanes[0]);
    }
}

/// Entries first, first + step, ... of an array, one a lane.
AVX2_INLINE __m256i every(const void* entries, int first, int step) {
    const __m256i lanes =
        _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(step));
    return _mm256_i32gather_epi32(static_cast<const int*>(entries) + first, lanes, 4);
}

/// Order (a) one row at a time: a row of whole blocks has segments of `blocks` groups each, so folding the
/// partial sums of groups i, i + blocks, i + 2 blocks ... yields vectors with one lane a segment, with the
/// work that (b) needs to fold a block; only the scales must be picked in strides too.
template <class T>
AVX2 void row_by_segments(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    const int blocks = x.columns / kBlockValues;
    const std::uint8_t* p = matrix;
    __m256i partial[kMaximumGroups];
    alignas(32) float factors[kMaximumGroups], minima[kMaximumGroups];
    alignas(32) std::int32_t corrections[kMaximumGroups];
    for (int r = 0; r < rows; ++r) {
        for (int b = 0; b < blocks; ++b, p += block_bytes(T::kType)) {
            prefetch(p + kPrefetchDistance, block_bytes(T::kType));
            Block block;
            T::read_block(p, x, b, block);
            for (int k = 0; k < kBlockGroups; ++k) partial[8 * b + k] = block.partial[k];
            _mm256_store_ps(factors + 8 * b, block.ds * _mm256_loadu_ps(x.scales.data() + 8 * b));
            if constexpr (T::kType == Type::Q4_K) _mm256_store_ps(minima + 8 * b, block.ms);
            if constexpr (T::kType == Type::Q6_K)
                _mm256_store_si256(reinterpret_cast<__m256i*>(corrections + 8 * b), block.correction);
        }
        __m256 acc = _mm256_setzero_ps();
        for (int i = 0; i < blocks; ++i) {
            __m256i of_segments[8];
            for (int s = 0; s < 8; ++s) of_segments[s] = partial[s * blocks + i];
            __m256i sums = fold(of_segments);
            if constexpr (T::kType == Type::Q6_K)
                sums = _mm256_sub_epi32(sums, every(corrections, i, blocks));
            const __m256 factor = _mm256_castsi256_ps(every(factors, i, blocks));
            acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), factor, acc);
            if constexpr (T::kType == Type::Q4_K)
                acc = _mm256_fmadd_ps(_mm256_castsi256_ps(every(minima, i, blocks)),
                                      _mm256_castsi256_ps(every(x.scaled_sums.data(), i, blocks)), acc);
        }
        out[r] = sum_ascending(acc);
    }
}

/// No order at all: partial sums are scaled where they are and folded once per row.
template <class T>
AVX2 void row_at_a_time_free(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    const int blocks = x.columns / kBlockValues;
    const std::uint8_t* p = matrix;
    for (int r = 0; r < rows; ++r) {
        __m256 acc[2] = {};
        __m256 rest = _mm256_setzero_ps();
        for (int b = 0; b < blocks; ++b, p += block_bytes(T::kType)) {
            prefetch(p + kPrefetchDistance, block_bytes(T::kType));
            Block block;
            T::read_block(p, x, b, block);
            const __m256 factor = block.ds * _mm256_loadu_ps(x.scales.data() + 8 * b);
            alignas(32) float factors[8];
            _mm256_store_ps(factors, factor);
            for (int k = 0; k < 8; ++k)
                acc[k % 2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(block.partial[k]), _mm256_set1_ps(factors[k]),
                                             acc[k % 2]);
            if constexpr (T::kType == Type::Q4_K)
                rest = _mm256_fmadd_ps(block.ms, _mm256_loadu_ps(x.scaled_sums.data() + 8 * b), rest);
            if constexpr (T::kType == Type::Q6_K)
                rest = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(block.correction), factor, rest);
        }
        out[r] = sum_pairwise(acc[0] + acc[1] + rest);
    }
}

template <class T, Order order>
constexpr Kernel in_lanes() {
    return {T::kType, order, Layout::LanePerRow, lane_per_row<T, order>};
}
template <class T, Order order>
constexpr Kernel in_rows() {
    return {T::kType, order, Layout::RowAtATime, row_at_a_time<T, order>};
}
template <class T>
constexpr Kernel by_segments() {
    return {T::kType, Order::Segments, Layout::RowAtATime, row_by_segments<T>};
}
template <class T>
constexpr Kernel in_rows_free() {
    return {T::kType, Order::Free, Layout::RowAtATime, row_at_a_time_free<T>};
}

}  // namespace
}  // namespace coterie::lab::avx2

namespace coterie::lab {

std::span<const Kernel> avx2_kernels() {
    using namespace avx2;
    static const Kernel kernels[] = {
        by_segments<Q4K>(),
        by_segments<Q6K>(),
        by_segments<IQ4XS>(),
        in_lanes<Q4K, Order::Segments>(),
        in_lanes<Q4K, Order::Lanes8>(),
        in_rows<Q4K, Order::Lanes8>(),
        in_lanes<Q4K, Order::Lanes4>(),
        in_rows<Q4K, Order::Lanes4>(),
        in_lanes<Q4K, Order::Lanes32>(),
        in_rows<Q4K, Order::Lanes32>(),
        in_lanes<Q4K, Order::Free>(),
        in_rows_free<Q4K>(),
        in_lanes<Q6K, Order::Segments>(),
        in_lanes<Q6K, Order::Lanes8>(),
        in_rows<Q6K, Order::Lanes8>(),
        in_lanes<Q6K, Order::Lanes4>(),
        in_rows<Q6K, Order::Lanes4>(),
        in_lanes<Q6K, Order::Lanes32>(),
        in_rows<Q6K, Order::Lanes32>(),
        in_lanes<Q6K, Order::Free>(),
        in_rows_free<Q6K>(),
        in_lanes<IQ4XS, Order::Segments>(),
        in_lanes<IQ4XS, Order::Lanes8>(),
        in_rows<IQ4XS, Order::Lanes8>(),
        in_lanes<IQ4XS, Order::Lanes4>(),
        in_rows<IQ4XS, Order::Lanes4>(),
        in_lanes<IQ4XS, Order::Lanes32>(),
        in_rows<IQ4XS, Order::Lanes32>(),
        in_lanes<IQ4XS, Order::Free>(),
        in_rows_free<IQ4XS>(),
    };
    return kernels;
}

}  // namespace coterie::lab
