#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/rotate.cuh"

namespace coterie::cuda {

/// One warp brings a head into shared memory, normalised and rotated.
__device__ inline void prepare_head(const float* x, const AttentionInputs& args, const float* norm,
                                    float epsilon, int pairs, std::int64_t token, float* head) {
    const int width = args.key_width;
    float values[kWidestHead / 32];  // asked for at once
#pragma unroll
    for (int k = 0; k < kWidestHead / 32; ++k)
        values[k] = lane_index() + 32 * k < width ? x[lane_index() + 32 * k] : 0.0f;
#pragma unroll
    for (int k = 0; k < kWidestHead / 32; ++k)
        if (lane_index() + 32 * k < width) head[lane_index() + 32 * k] = values[k];
    __syncwarp();
    if (norm != nullptr) {
        const auto value = [&](int i) { return head[i]; };
        const float mean = __fdiv_rn(warp_dot(width, value, value), static_cast<float>(width));
        const float r = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, epsilon)));
        __syncwarp();
        for (int i = lane_index(); i < width; i += 32) head[i] = __fmul_rn(__fmul_rn(head[i], r), norm[i]);
        __syncwarp();
    }
    for (int pair = lane_index(); pair < pairs; pair += 32) {
        rotate_pair(head, pair, pairs, args.style, args.cosines[token * pairs + pair],
                    args.sines[token * pairs + pair]);
    }
    __syncwarp();
}

}  // namespace coterie::cuda
