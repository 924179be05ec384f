#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/reference/transcendental_constants.h"

/// The law for transcendental functions (docs/canonical-arithmetic.md): every instruction set and device
/// evaluates these expressions in this order, one rounding per operation, and so gives the same bits. NaN
/// gives NaN; its payload is free.
namespace coterie::reference {

/// e^x within 1 ulp: with t = fma(x, log2 e, shift) and n = t - shift, r = x - n ln 2 in two fused steps, a
/// degree 6 polynomial by Horner's rule, and n added to the result's exponent. 0 below -87.3, infinity
/// above 88.7228.
inline float exp(float x) {
    if (std::isnan(x)) return x;
    if (x < kExpUnderflow) return 0.0f;
    if (x > kExpOverflow) return INFINITY;
    const float t = std::fma(x, kLog2E, kRoundingShift);
    const float n = t - kRoundingShift;
    const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
    float p = kExpCoefficients[4];
    for (int i = 3; i >= 0; --i) p = std::fma(p, r, kExpCoefficients[i]);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    // The shift's own bits vanish in the move: only n reaches the exponent.
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(t) << 23));
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

inline float silu(float x) { return x / (1.0f + exp(-x)); }

/// log(1 + e) = 2 atanh(e / (2 + e)) for 0 <= e <= 1.
inline float log1p_unit(float e) {
    const float s = e / (2.0f + e);
    const float z = s * s;
    float p = kAtanhCoefficients[4];
    for (int i = 3; i >= 0; --i) p = std::fma(p, z, kAtanhCoefficients[i]);
    const float twice = s + s;
    return std::fma(twice * z, p, twice);
}

/// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)); x above 20 unchanged.
inline float softplus(float x) {
    if (x > kSoftplusLinear) return x;
    return (x > 0.0f ? x : 0.0f) + log1p_unit(exp(-std::fabs(x)));
}

/// silu(gate) * up
inline float swiglu(float gate, float up) { return silu(gate) * up; }

/// g = min(gate, 7), u = clamp(up, -7, 7): (g / (1 + exp(-(1.702 g)))) * (u + 1). NaN passes the limits.
inline float swiglu_oai(float gate, float up) {
    const float g = kSwigluOaiLimit < gate ? kSwigluOaiLimit : gate;
    const float below = kSwigluOaiLimit < up ? kSwigluOaiLimit : up;
    const float u = -kSwigluOaiLimit > below ? -kSwigluOaiLimit : below;
    return g / (1.0f + exp(-(kSwigluOaiSlope * g))) * (u + 1.0f);
}

}  // namespace coterie::reference
