#include "quant/types/k_quants.h"

#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {
namespace {

/// Q2_K and Q3_K: each 32 bytes hold four groups, two bits each.
int two_bits(const std::uint8_t* qs, int g, int l) { return (qs[32 * (g / 4) + l] >> (2 * (g % 4))) & 3; }

/// Q4_K and Q5_K: each 32 bytes hold two groups, the even one in the low nibbles.
int four_bits(const std::uint8_t* qs, int g, int l) { return (qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15; }

/// Q3_K: four low bits as nibbles of the first 8 bytes (all low ones first), two high bits in the last 4.
int six_bit_scale(const std::uint8_t* scales, int i) {
    const int low = i < 8 ? low_nibble(scales[i]) : high_nibble(scales[i - 8]);
    const int high = (scales[8 + i % 4] >> (2 * (i / 4))) & 3;
    return low | high << 4;
}

}  // namespace

int ScalesAndMinima::scale(int k) const {
    if (k < 4) return bytes[k] & 63;
    return (bytes[k + 4] & 15) | (bytes[k - 4] >> 6) << 4;
}

int ScalesAndMinima::minimum(int k) const {
    if (k < 4) return bytes[k + 4] & 63;
    return (bytes[k + 4] >> 4) | (bytes[k] >> 6) << 4;
}

void ScalesAndMinima::set(const std::array<int, 8>& scales, const std::array<int, 8>& minima) {
    for (std::size_t k = 0; k < 4; ++k) {
        bytes[k] = static_cast<std::uint8_t>(scales[k] | (scales[k + 4] >> 4) << 6);
        bytes[k + 4] = static_cast<std::uint8_t>(minima[k] | (minima[k + 4] >> 4) << 6);
        bytes[k + 8] = static_cast<std::uint8_t>((scales[k + 4] & 15) | (minima[k + 4] & 15) << 4);
    }
}

HalfMinimaGroup Q2_K::group(int g) const {
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) codes[l] = static_cast<std::int8_t>(two_bits(qs, g, l));
    const std::uint8_t first = scales[2 * g];
    const std::uint8_t second = scales[2 * g + 1];
    return {{codes, {low_nibble(first), low_nibble(second)}, f16_to_f32(d)},
            {high_nibble(first), high_nibble(second)},
            -f16_to_f32(dmin)};
}

HalfScaledGroup Q3_K::group(int g) const {
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) {
        const int high = (hmask[l] >> g) & 1;
        codes[l] = static_cast<std::int8_t>((two_bits(qs, g, l) | high << 2) - 4);
    }
    return {codes, {six_bit_scale(scales, 2 * g) - 32, six_bit_scale(scales, 2 * g + 1) - 32}, f16_to_f32(d)};
}

MinimumGroup Q4_K::group(int g) const {
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) codes[l] = static_cast<std::int8_t>(four_bits(qs, g, l));
    return {codes, f16_to_f32(d) * static_cast<float>(scales.scale(g)),
            -(f16_to_f32(dmin) * static_cast<float>(scales.minimum(g)))};
}

MinimumGroup Q5_K::group(int g) const {
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) {
        codes[l] = static_cast<std::int8_t>(four_bits(qs, g, l) | ((qh[l] >> g) & 1) << 4);
    }
    return {codes, f16_to_f32(d) * static_cast<float>(scales.scale(g)),
            -(f16_to_f32(dmin) * static_cast<float>(scales.minimum(g)))};
}

// A half of 128 values has 64 bytes of `ql`: its groups 0 and 1 are the low nibbles of the first and the last
// 32 bytes, groups 2 and 3 the high nibbles.
HalfScaledGroup Q6_K::group(int g) const {
    const int half = g / 4;
    const int part = g % 4;
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) {
        const int low = (ql[64 * half + 32 * (part % 2) + l] >> (4 * (part / 2))) & 15;
        const int high = (qh[32 * half + l] >> (2 * part)) & 3;
        codes[l] = static_cast<std::int8_t>((low | high << 4) - 32);
    }
    return {codes, {scales[2 * g], scales[2 * g + 1]}, f16_to_f32(d)};
}

PlainGroup Q8_K::group(int g) const {
    Codes codes;
    for (int l = 0; l < kGroupValues; ++l) codes[l] = qs[kGroupValues * g + l];
    return {codes, d};
}

}  // namespace coterie::blocks
