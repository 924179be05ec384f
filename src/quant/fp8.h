#pragma once

#include <bit>
#include <cstdint>

/// The 8-bit scales of the FP4 types. Their FP4 codes are kept as doubled integers (0, 1, 2, 3, 4, 6, 8, 12),
/// so both functions return half of what the code means.
namespace coterie {

/// E8M0 of MXFP4: 2^(code - 128). Codes 0 and 1 are binary32 subnormals; 255 is not treated as NaN.
inline float half_of_e8m0(std::uint8_t code) {
    if (code < 2) return std::bit_cast<float>(0x00200000u << code);
    return std::bit_cast<float>(static_cast<std::uint32_t>(code - 1) << 23);
}

/// Unsigned E4M3 of NVFP4 (exponent bias 7, the sign bit ignored), halved. 0x7f means 0.
inline float half_of_ue4m3(std::uint8_t code) {
    const std::uint32_t exponent = (code >> 3) & 15u;
    const std::uint32_t mantissa = code & 7u;
    if ((code & 0x7fu) == 0x7fu) return 0.0f;
    if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
    return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

}  // namespace coterie
