#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/rotate.cuh"

namespace coterie::cuda {

/// One warp brings a head into shared memory, normalised and rotated.
__device__ inline void prepare_head(const float* x, const AttentionInputs& args, const float* norm,
                                    float epsilon, int pairs, std::int64_t token, float* head) {
    const int width = args.key_width;
    constexpr int kAhead = 4;  // of a lane's values, asked for at once
#pragma unroll 1
    for (int first = lane_index(); first < width; first += 32 * kAhead) {
        float values[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) values[k] = first + 32 * k < width ? x[first + 32 * k] : 0.0f;
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
            if (first + 32 * k < width) head[first + 32 * k] = values[k];
    }
    __syncwarp();
    if (norm != nullptr) {
        const auto value = [&](int i) { return head[i]; };
        const float mean = __fdiv_rn(warp_dot(width, value, value), static_cast<float>(width));
        const float r = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, epsilon)));
        __syncwarp();
#pragma unroll 1
        for (int i = lane_index(); i < width; i += 32) head[i] = __fmul_rn(__fmul_rn(head[i], r), norm[i]);
        __syncwarp();
    }
#pragma unroll 1
    for (int pair = lane_index(); pair < pairs; pair += 32) {
        rotate_pair(head, pair, pairs, args.style, args.cosines[token * pairs + pair],
                    args.sines[token * pairs + pair]);
    }
    __syncwarp();
}

}  // namespace coterie::cuda
