// AVX-512 (VNNI) kernels of the reduction-order study: as reduction_order_avx2.cpp, with 16 rows or two to
// four groups a vector.

#include "reduction_order_avx512_types.h"

namespace coterie::lab::avx512 {
namespace {

template <class T, Order order>
AVX512 void lane_per_row(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    constexpr int kLanes = order == Order::Lanes32  ? 32
                           : order == Order::Lanes8 ? 8
                           : order == Order::Lanes4 ? 4
                                                    : 1;
    const int blocks = x.columns / kBlockValues;
    const std::size_t stride = static_cast<std::size_t>(blocks) * block_bytes(T::kType);
    for (int r = 0; r < rows; r += 16) {
        const std::uint8_t* row = matrix + r * stride;
        __m512 lanes[kLanes];
        for (__m512& lane : lanes) lane = _mm512_setzero_ps();
        __m512 total = _mm512_setzero_ps();
        for (int b = 0; b < blocks; ++b, row += block_bytes(T::kType)) {
            prefetch(row_ahead<16>(matrix + r * stride, stride) +
                         16 * static_cast<std::size_t>(b) * block_bytes(T::kType),
                     16 * block_bytes(T::kType));
            Panel panel;
            T::read_panel(row, stride, x, b, panel);
            for (int k = 0; k < kBlockGroups; ++k) {
                const int g = 8 * b + k;
                __m512& acc = lanes[kLanes == 32 ? g % 32 : k % kLanes];
                acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(panel.sums[k]),
                                      panel.ds[k] * _mm512_set1_ps(x.scales[g]), acc);
                if constexpr (T::kType == Type::Q4_K)
                    acc = _mm512_fmadd_ps(panel.ms[k], _mm512_set1_ps(x.scaled_sums[g]), acc);
                if (order == Order::Segments && x.is_segment_end[g]) {
                    total += acc;
                    acc = _mm512_setzero_ps();
                }
            }
        }
        if constexpr (order == Order::Lanes4 || order == Order::Lanes8)
            for (const __m512 lane : lanes) total += lane;
        if constexpr (order == Order::Lanes32)
            for (int width = 16; width > 0; width /= 2)
                for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
        _mm512_storeu_ps(out + r, order == Order::Free || order == Order::Lanes32 ? lanes[0] : total);
    }
}

AVX512_INLINE float sum_pairwise(__m256 v) {
    __m128 sum = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
    sum += _mm_movehl_ps(sum, sum);
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

AVX512_INLINE float sum_ascending(__m256 v) {
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, v);
    float total = 0.0f;
    for (float lane : lanes) total += lane;
    return total;
}

/// One block of order (d): lanes take groups 0 to 3, then 4 to 7.
AVX512_INLINE __m128 add_in_four_lanes(__m128 acc, __m256 sums, __m256 factor, __m256 ms,
                                       const float* scaled_sums) {
    acc = _mm_fmadd_ps(_mm256_castps256_ps128(sums), _mm256_castps256_ps128(factor), acc);
    if (scaled_sums != nullptr)
        acc = _mm_fmadd_ps(_mm256_castps256_ps128(ms), _mm_loadu_ps(scaled_sums), acc);
    acc = _mm_fmadd_ps(_mm256_extractf128_ps(sums, 1), _mm256_extractf128_ps(factor, 1), acc);
    if (scaled_sums != nullptr)
        acc = _mm_fmadd_ps(_mm256_extractf128_ps(ms, 1), _mm_loadu_ps(scaled_sums + 4), acc);
    return acc;
}

AVX512_INLINE float sum_ascending(__m128 v) {
    alignas(16) float lanes[4];
    _mm_store_ps(lanes, v);
    return ((0.0f + lanes[0]) + lanes[1] + lanes[2]) + lanes[3];
}

template <class T, Order order>
AVX512 void row_at_a_time(const std::uint8_t* matrix, int rows, const Activation& x, float* out) {
    const int blocks = x.columns / kBlockValues;
    const std::uint8_t* p = matrix;
    for (int r = 0; r < rows; ++r) {
        __m128 four = _mm_setzero_ps();
        __m256 lanes[4] = {};
        __m512 free[2] = {};
        for (int b = 0; b < blocks; ++b, p += block_bytes(T::kType)) {
            prefetch(p + kPrefetchDistance, block_bytes(T::kType));
            __m512i partial[4];
            const Block block = T::read_block(p, x, b, partial);
            const __m256 factor = block.ds * _mm256_loadu_ps(x.scales.data() + 8 * b);
            const float* scaled_sums = T::kType == Type::Q4_K ? x.scaled_sums.data() + 8 * b : nullptr;
            if constexpr (order == Order::Lanes4) {
                const __m256 sums = _mm256_cvtepi32_ps(T::fold(partial, p, x, b));
                four = add_in_four_lanes(four, sums, factor, block.ms, scaled_sums);
                continue;
            }
            __m256& acc = lanes[order == Order::Lanes32 ? b % 4 : 0];
            if constexpr (order == Order::Free)
                T::add_free(partial, p, x, b, factor, free);
            else
                acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(T::fold(partial, p, x, b)), factor, acc);
            if (scaled_sums != nullptr) acc = _mm256_fmadd_ps(block.ms, _mm256_loadu_ps(scaled_sums), acc);
        }
        if constexpr (order == Order::Lanes4) out[r] = sum_ascending(four);
        if constexpr (order == Order::Lanes8) out[r] = sum_ascending(lanes[0]);
        if constexpr (order == Order::Lanes32)
            out[r] = sum_pairwise((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
        if constexpr (order == Order::Free) {
            const __m512 sum = free[0] + free[1];
            out[r] = sum_pairwise(lanes[0] + _mm512_castps512_ps256(sum) + _mm512_extractf32x8_ps(sum, 1));
        }
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

}  // namespace
}  // namespace coterie::lab::avx512

namespace coterie::lab {

std::span<const Kernel> avx512_kernels() {
    using namespace avx512;
    static const Kernel kernels[] = {
        in_lanes<Q4K, Order::Segments>(),   in_lanes<Q4K, Order::Lanes8>(),
        in_rows<Q4K, Order::Lanes8>(),      in_lanes<Q4K, Order::Lanes4>(),
        in_rows<Q4K, Order::Lanes4>(),      in_lanes<Q4K, Order::Lanes32>(),
        in_rows<Q4K, Order::Lanes32>(),     in_lanes<Q4K, Order::Free>(),
        in_rows<Q4K, Order::Free>(),        in_lanes<Q6K, Order::Segments>(),
        in_lanes<Q6K, Order::Lanes8>(),     in_rows<Q6K, Order::Lanes8>(),
        in_lanes<Q6K, Order::Lanes4>(),     in_rows<Q6K, Order::Lanes4>(),
        in_lanes<Q6K, Order::Lanes32>(),    in_rows<Q6K, Order::Lanes32>(),
        in_lanes<Q6K, Order::Free>(),       in_rows<Q6K, Order::Free>(),
        in_lanes<IQ4XS, Order::Segments>(), in_lanes<IQ4XS, Order::Lanes8>(),
        in_rows<IQ4XS, Order::Lanes8>(),    in_lanes<IQ4XS, Order::Lanes4>(),
        in_rows<IQ4XS, Order::Lanes4>(),    in_lanes<IQ4XS, Order::Lanes32>(),
        in_rows<IQ4XS, Order::Lanes32>(),   in_lanes<IQ4XS, Order::Free>(),
        in_rows<IQ4XS, Order::Free>(),
    };
    return kernels;
}

}  // namespace coterie::lab
