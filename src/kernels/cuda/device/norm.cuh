#pragma once

#include "kernels/cuda/device/quantise.cuh"
#include "kernels/cuda/row_ops.h"

/// src/kernels/reference/rms_norm.cpp by one block, whose threads all take part.
namespace coterie::cuda {

/// By one warp: 1 / sqrt(mean(x^2) + epsilon).
__device__ __forceinline__ float norm_factor(const float* values, int width, float epsilon) {
    const auto value = [=](int i) { return values[i]; };
    const float mean = __fdiv_rn(warp_dot<8>(width, value, value), static_cast<float>(width));
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, epsilon)));
}

__device__ __forceinline__ float normalised(float value, float factor, float weight) {
    return __fmul_rn(__fmul_rn(value, factor), weight);
}

/// Row `token` of x + y, to shared memory that holds the width rounded up to 4; what lies behind it in the
/// row's last group is read, and means nothing. A thread asks for kAhead quads at once.
template <int kAhead>
__device__ __forceinline__ void load_sums(const NormedInput& in, std::int64_t token, float* values) {
    const auto* x = reinterpret_cast<const float4*>(in.x + token * in.stride);
    const auto* y = reinterpret_cast<const float4*>(in.y + token * in.stride);
    const int quads = (in.width + 3) / 4;
    const int threads = static_cast<int>(blockDim.x);
#pragma unroll 1
    for (int begin = static_cast<int>(threadIdx.x); begin < quads; begin += kAhead * threads) {
        float4 sums[kAhead];
        float4 added[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) sums[k] = x[min(begin + k * threads, quads - 1)];
        if (in.y != nullptr) {
#pragma unroll
            for (int k = 0; k < kAhead; ++k) added[k] = y[min(begin + k * threads, quads - 1)];
#pragma unroll
            for (int k = 0; k < kAhead; ++k)
                sums[k] = {__fadd_rn(sums[k].x, added[k].x), __fadd_rn(sums[k].y, added[k].y),
                           __fadd_rn(sums[k].z, added[k].z), __fadd_rn(sums[k].w, added[k].w)};
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
            if (begin + k * threads < quads) reinterpret_cast<float4*>(values)[begin + k * threads] = sums[k];
    }
}

/// After `load_sums`; the same for all threads.
__device__ __forceinline__ float block_norm_factor(const NormedInput& in, const float* values) {
    __shared__ float factor;
    __syncthreads();
    if (warp_index() == 0) {
        const float found = norm_factor(values, in.width, in.epsilon);
        if (lane_index() == 0) factor = found;
    }
    __syncthreads();
    return factor;
}

/// Group g of row `token`, by one warp: the sum, the norm and its quantised form go where later kernels read
/// them. `weight` is the norm's, wherever it lies.
__device__ __forceinline__ void store_normed_group(const NormedInput& in, std::int64_t token, int g,
                                                   const float* values, const float* weight, float factor) {
    const int i = 32 * g + lane_index();
    const bool inside = i < in.width;
    const float value = inside ? normalised(values[i], factor, weight[i]) : 0.0f;
    if (inside) {
        in.out[token * in.stride + i] = value;
        if (in.y != nullptr) in.sum[token * in.stride + i] = values[i];
    }
    store_group(in.quantised, token, g, value);
}

}  // namespace coterie::cuda
