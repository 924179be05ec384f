#include "quant/types/few_bits.h"

#include "quant/half.h"

namespace coterie::blocks {
namespace {

/// Digit n of a TQ1_0 byte, less one. The byte is a fraction b / 256: times 3^n, its whole part dropped,
/// times 3 again leaves the digit before the point.
std::int8_t ternary_digit(std::uint8_t byte, int n) {
    constexpr int kPowersOfThree[5] = {1, 3, 9, 27, 81};
    const int fraction = (byte * kPowersOfThree[n]) & 255;
    return static_cast<std::int8_t>(((fraction * 3) >> 8) - 1);
}

}  // namespace

PlainGroup Q1_0::group(int g) const {
    PlainGroup result{{}, f16_to_f32(d)};
    for (int l = 0; l < kGroupValues; ++l) {
        result.codes[l] = ((qs[4 * g + l / 8] >> (l % 8)) & 1) != 0 ? 1 : -1;
    }
    return result;
}

PlainGroup Q2_0::group(int g) const {
    PlainGroup result{{}, f16_to_f32(d)};
    for (int l = 0; l < kGroupValues; ++l) {
        result.codes[l] = static_cast<std::int8_t>(((qs[8 * g + l / 4] >> (2 * (l % 4))) & 3) - 1);
    }
    return result;
}

PlainGroup TQ1_0::group(int g) const {
    PlainGroup result{{}, f16_to_f32(d)};
    for (int l = 0; l < kGroupValues; ++l) {
        const int value = static_cast<int>(kGroupValues) * g + l;
        if (value < 160) {
            result.codes[l] = ternary_digit(qs[l], g);
        } else if (value < 240) {
            result.codes[l] = ternary_digit(qs[32 + (value - 160) % 16], (value - 160) / 16);
        } else {
            result.codes[l] = ternary_digit(qh[(value - 240) % 4], (value - 240) / 4);
        }
    }
    return result;
}

PlainGroup TQ2_0::group(int g) const {
    PlainGroup result{{}, f16_to_f32(d)};
    for (int l = 0; l < kGroupValues; ++l) {
        result.codes[l] = static_cast<std::int8_t>(((qs[32 * (g / 4) + l] >> (2 * (g % 4))) & 3) - 1);
    }
    return result;
}

}  // namespace coterie::blocks
