#pragma once

#include "kernels/cuda/row_ops.h"

namespace coterie::cuda {

/// a <- fma(a, c, -(b * s)); b <- fma(b, c, a * s): src/kernels/reference/rope.cpp.
__device__ __forceinline__ void rotate_pair(float* head, int pair, int pairs, RotationStyle style,
                                            float cosine, float sine) {
    const int i = style == RotationStyle::Adjacent ? 2 * pair : pair;
    const int j = style == RotationStyle::Adjacent ? 2 * pair + 1 : pairs + pair;
    const float a = head[i];
    const float b = head[j];
    head[i] = __fmaf_rn(a, cosine, -__fmul_rn(b, sine));
    head[j] = __fmaf_rn(b, cosine, __fmul_rn(a, sine));
}

}  // namespace coterie::cuda
