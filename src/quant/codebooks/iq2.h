#pragma once

#include "quant/types/group.h"

/// About 2 bits a value: eight values are one entry of a codebook of magnitudes and eight signs. A 4-bit
/// scale s counts as d * (2 s + 1) / 8.
namespace coterie::blocks {

struct [[gnu::packed]] IQ2_XXS {
    static constexpr int kValues = 256;
    struct [[gnu::packed]] Record {     // 32 values
        std::uint8_t entries[4];        ///< of the codebook
        std::uint32_t signs_and_scale;  ///< four times 7 bits of signs, then the scale
    };
    std::uint16_t d;
    Record records[8];
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ2_XXS) == 66);

/// One scale for each 16 values.
struct [[gnu::packed]] IQ2_XS {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint16_t qs[32];  ///< 9 bits of codebook entry, 7 bits of signs
    std::uint8_t scales[8];
    HalfScaledGroup group(int g) const;
};
static_assert(sizeof(IQ2_XS) == 74);

/// One scale for each 16 values, all signs stored.
struct [[gnu::packed]] IQ2_S {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint8_t qs[32];  ///< low 8 bits of the codebook entries
    std::uint8_t signs[32];
    std::uint8_t qh[8];  ///< two high bits of four entries
    std::uint8_t scales[8];
    HalfScaledGroup group(int g) const;
};
static_assert(sizeof(IQ2_S) == 82);

}  // namespace coterie::blocks
