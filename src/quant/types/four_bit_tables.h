#pragma once

#include <array>

#include "quant/types/group.h"

/// Types whose 4-bit codes look up one of 16 values. A byte j holds values j (low nibble) and j + 16 of its
/// 32 values; NVFP4 does the same with 8 instead of 16.
namespace coterie::blocks {

/// The values of IQ4_NL and IQ4_XS.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                           1,    13,   25,  38,  53,  69,  89,  113};

/// FP4 (E2M1) doubled, so that all are integers.
inline constexpr std::array<std::int8_t, 16> kFp4DoubledValues = {0, 1,  2,  3,  4,  6,  8,  12,
                                                                  0, -1, -2, -3, -4, -6, -8, -12};

struct [[gnu::packed]] IQ4_NL {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ4_NL) == 18);

/// A 6-bit scale (biased by 32) for each 32 values: nibbles in `scales_l`, two more bits each in `scales_h`.
struct [[gnu::packed]] IQ4_XS {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint16_t scales_h;
    std::uint8_t scales_l[4];
    std::uint8_t qs[128];
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ4_XS) == 136);

/// The scale is a power of two.
struct [[gnu::packed]] MXFP4 {
    static constexpr int kValues = 32;
    std::uint8_t e;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(MXFP4) == 17);

/// An unsigned E4M3 scale for each 16 values. The scale of the whole tensor is another tensor of the file.
struct [[gnu::packed]] NVFP4 {
    static constexpr int kValues = 64;
    std::uint8_t d[4];
    std::uint8_t qs[32];
    TwoScaleGroup group(int g) const;
};
static_assert(sizeof(NVFP4) == 36);

}  // namespace coterie::blocks
