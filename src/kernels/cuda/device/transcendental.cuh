#pragma once

#include "kernels/reference/transcendental_constants.h"

/// The expressions of src/kernels/reference/transcendental.h, operation by operation.
namespace coterie::cuda {

__device__ __forceinline__ float law_exp(float x) {
    using namespace reference;
    if (isnan(x)) return x;
    if (x < kExpUnderflow) return 0.0f;
    if (x > kExpOverflow) return __int_as_float(0x7f800000);
    const float t = __fmaf_rn(x, kLog2E, kRoundingShift);
    const float n = __fsub_rn(t, kRoundingShift);
    const float r = __fmaf_rn(n, -kLn2Low, __fmaf_rn(n, -kLn2High, x));
    float p = 0x1.6d113cp-10f;
    p = __fmaf_rn(p, r, 0x1.120ba2p-7f);
    p = __fmaf_rn(p, r, 0x1.55551ap-5f);
    p = __fmaf_rn(p, r, 0x1.5554dcp-3f);
    p = __fmaf_rn(p, r, 0.5f);
    p = __fmaf_rn(p, r, 1.0f);
    p = __fmaf_rn(p, r, 1.0f);
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(t) << 23));
}

__device__ __forceinline__ float law_sigmoid(float x) {
    return __fdiv_rn(1.0f, __fadd_rn(1.0f, law_exp(-x)));
}

__device__ __forceinline__ float law_silu(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, law_exp(-x))); }

__device__ __forceinline__ float law_swiglu(float gate, float up) { return __fmul_rn(law_silu(gate), up); }

/// NaN passes the limits.
__device__ __forceinline__ float law_swiglu_oai(float gate, float up) {
    using namespace reference;
    const float g = kSwigluOaiLimit < gate ? kSwigluOaiLimit : gate;
    const float below = kSwigluOaiLimit < up ? kSwigluOaiLimit : up;
    const float u = -kSwigluOaiLimit > below ? -kSwigluOaiLimit : below;
    const float slope = __fadd_rn(1.0f, law_exp(-__fmul_rn(kSwigluOaiSlope, g)));
    return __fmul_rn(__fdiv_rn(g, slope), __fadd_rn(u, 1.0f));
}

}  // namespace coterie::cuda
