#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

/// What the quantisers share: scales from ranges and least squares.
namespace coterie::blocks {

/// 1 / x, and 0 for 0: values times the inverse of a zero scale become code 0.
inline float inverse_or_zero(float x) { return x == 0.0f ? 0.0f : 1.0f / x; }

/// The nearest integer within the range, halves away from zero.
inline int round_to_range(float x, int lowest, int highest) {
    const float clamped = std::clamp(x, static_cast<float>(lowest), static_cast<float>(highest));
    return static_cast<int>(std::round(clamped));
}

/// The value of largest magnitude, with its sign.
inline float signed_maximum(const float* x, int n) {
    return *std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

/// A scale with x[i] ~ scale * code. The largest magnitude is first put on the code `lowest` (negative, the
/// one of largest magnitude); the scale then fits these codes best. `nearest` rounds x / scale to a code's
/// value.
template <typename Nearest>
float fit_scale(const float* x, int n, int lowest, Nearest nearest) {
    const float inverse = inverse_or_zero(signed_maximum(x, n) / static_cast<float>(lowest));
    float products = 0.0f;
    float squares = 0.0f;
    for (int i = 0; i < n; ++i) {
        const auto code = static_cast<float>(nearest(x[i] * inverse));
        products += x[i] * code;
        squares += code * code;
    }
    return products * inverse_or_zero(squares);
}

struct ScaleAndMinimum {
    float scale;
    float minimum;  ///< subtracted; never negative
};

/// x[i] ~ scale * code - minimum with codes 0 .. highest: first from the range, then the least-squares line
/// through it.
ScaleAndMinimum fit_scale_and_minimum(const float* x, int n, int highest);

}  // namespace coterie::blocks
