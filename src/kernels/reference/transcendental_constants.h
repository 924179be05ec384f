#pragma once

/// The numbers of the one exp and the one log1p that every kernel uses. Plain constants, so that SIMD and
/// device code take them from here too; `transcendental.h` gives the expressions that go with them.
namespace coterie::reference {

inline constexpr float kExpUnderflow = -87.3f;  ///< below: 0, so that no result is subnormal
inline constexpr float kExpOverflow =
    0x1.62e42ep+6f;  ///< largest argument with a finite result; above: infinity
inline constexpr float kLog2E = 0x1.715476p+0f;
/// Adding it rounds to an integer, to nearest even, and leaves that integer in the low bits of the sum.
inline constexpr float kRoundingShift = 0x1.8p+23f;
inline constexpr float kLn2High =
    0x1.62e43p-1f;  ///< n * high is exact enough that x - n * high does not round
inline constexpr float kLn2Low = -0x1.05c61p-29f;  ///< ln 2 - high

/// exp(r) = 1 + r + r^2 (c0 + c1 r + ...), |r| <= ln(2) / 2: Chebyshev interpolation, relative error 1.1e-8.
inline constexpr float kExpCoefficients[5] = {0.5f, 0x1.5554dcp-3f, 0x1.55551ap-5f, 0x1.120ba2p-7f,
                                              0x1.6d113cp-10f};

/// atanh(s) = s + s z (c0 + c1 z + ...), z = s^2 <= 1 / 9: Chebyshev interpolation, relative error 1e-9.
inline constexpr float kAtanhCoefficients[5] = {0x1.555556p-2f, 0x1.9998d4p-3f, 0x1.24c926p-3f,
                                                0x1.bc8cf8p-4f, 0x1.dba26p-4f};

inline constexpr float kSoftplusLinear = 20.0f;  ///< softplus leaves larger arguments unchanged

/// gpt-oss: sigmoid(1.702 g), both inputs limited to 7.
inline constexpr float kSwigluOaiSlope = 1.702f;
inline constexpr float kSwigluOaiLimit = 7.0f;

}  // namespace coterie::reference
