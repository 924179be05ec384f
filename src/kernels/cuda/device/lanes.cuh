#pragma once

#include <cstdint>

/// Sums over a row in the law's order: value i in lane i mod 32 of a warp, lanes folded in halves.
namespace coterie::cuda {

inline constexpr unsigned kFullWarp = 0xffffffffu;

__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int block_threads() { return static_cast<int>(blockDim.x); }
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x & 31); }
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x >> 5); }

/// Lane 0's result is lane[0] of the law; every lane gets it.
__device__ __forceinline__ float fold_lanes(float lane) {
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        lane = __fadd_rn(lane, __shfl_down_sync(kFullWarp, lane, width));
    return __shfl_sync(kFullWarp, lane, 0);
}

/// `fold_lanes` of kCount values, a power of two up to 32, at once: lane l gets that of value l * kCount
/// / 32. Where the law adds the upper lanes to the lower ones, the upper lanes add the lower ones' values for
/// half of the values.
template <int kCount, int kHeld = kCount, int kWidth = 16>
__device__ __forceinline__ float fold_together(float (&values)[kCount]) {
    const bool upper = lane_index() & kWidth;
#pragma unroll
    for (int i = 0; i < (kHeld + 1) / 2; ++i) {
        const float kept = kHeld > 1 && upper ? values[i + kHeld / 2] : values[i];
        const float sent = kHeld == 1 || upper ? values[i] : values[i + kHeld / 2];
        values[i] = __fadd_rn(kept, __shfl_xor_sync(kFullWarp, sent, kWidth));
    }
    if constexpr (kWidth > 1) return fold_together<kCount, (kHeld + 1) / 2, kWidth / 2>(values);
    return values[0];
}

/// The dot product of two rows by one warp; `a(i)` and `b(i)` give value i < n. The row is filled up with +0.
/// `kAhead` values of a lane are read at once.
template <int kAhead = 4, typename A, typename B>
__device__ __forceinline__ float warp_dot(int n, A a, B b) {
    float lane = 0.0f;
    int i = lane_index();
#pragma unroll kAhead
    for (; i < n; i += 32) lane = __fmaf_rn(a(i), b(i), lane);
    if (n % 32 != 0 && lane_index() >= n % 32) lane = __fadd_rn(lane, 0.0f);  // turns a lane of -0 into +0
    return fold_lanes(lane);
}

__device__ __forceinline__ float warp_maximum(float value) {
#pragma unroll
    for (int width = 16; width > 0; width /= 2)
        value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, width));
    return value;
}

/// Of all lanes; one instruction where the GPU has it.
__device__ __forceinline__ unsigned warp_maximum(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(kFullWarp, value);
#else
#pragma unroll
    for (int width = 16; width > 0; width /= 2) value = max(value, __shfl_xor_sync(kFullWarp, value, width));
    return value;
#endif
}

__device__ __forceinline__ unsigned warp_minimum(unsigned value) { return ~warp_maximum(~value); }

__device__ __forceinline__ unsigned warp_sum(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(kFullWarp, value);
#else
#pragma unroll
    for (int width = 16; width > 0; width /= 2) value += __shfl_xor_sync(kFullWarp, value, width);
    return value;
#endif
}

}  // namespace coterie::cuda
