#pragma once

// The expressions of kernels/reference/transcendental.h on vectors.
namespace coterie::cpu::COTERIE_ISA {
namespace {

inline Vector exp(Vector x) {
    const Vector t = fma(x, broadcast(reference::kLog2E), broadcast(reference::kRoundingShift));
    const Vector n = t - broadcast(reference::kRoundingShift);
    Vector r = fma(n, broadcast(-reference::kLn2High), x);
    r = fma(n, broadcast(-reference::kLn2Low), r);
    Vector p = broadcast(reference::kExpCoefficients[4]);
    for (int i = 3; i >= 0; --i) p = fma(p, r, broadcast(reference::kExpCoefficients[i]));
    p = fma(p, r, broadcast(1.0f));
    p = fma(p, r, broadcast(1.0f));
    Vector result = add_exponent(p, t);
    result = select(x < broadcast(reference::kExpUnderflow), zero(), result);
    result = select(x > broadcast(reference::kExpOverflow), broadcast(__builtin_inff()), result);
    return select(is_nan(x), x, result);
}

inline float exp(float x) {
    float all[kWidth];
    store(all, exp(broadcast(x)));
    return all[0];
}

inline Vector log1p_unit(Vector e) {
    const Vector s = e / (broadcast(2.0f) + e);
    const Vector z = s * s;
    Vector p = broadcast(reference::kAtanhCoefficients[4]);
    for (int i = 3; i >= 0; --i) p = fma(p, z, broadcast(reference::kAtanhCoefficients[i]));
    const Vector twice = s + s;
    return fma(twice * z, p, twice);
}

/// x / (1 + exp(-slope_times_x))
inline Vector gated(Vector x, Vector slope_times_x) { return x / (broadcast(1.0f) + exp(-slope_times_x)); }

}  // namespace
}  // namespace coterie::cpu::COTERIE_ISA
