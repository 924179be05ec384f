#pragma once

#include "quant/types/group.h"

/// About 3 bits a value: four values are one entry of a codebook of magnitudes, with eight signs for two
/// entries.
namespace coterie::blocks {

/// A 4-bit scale s for each 32 values counts as d * (2 s + 1) / 4.
struct [[gnu::packed]] IQ3_XXS {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint8_t qs[64];
    std::uint32_t signs_and_scales[8];  ///< four times 7 bits of signs, then the scale
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ3_XXS) == 98);

/// A 4-bit scale s for each 32 values counts as d * (2 s + 1). All signs are stored.
struct [[gnu::packed]] IQ3_S {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint8_t qs[64];  ///< low 8 bits of the codebook entries
    std::uint8_t qh[8];   ///< the ninth bits
    std::uint8_t signs[32];
    std::uint8_t scales[4];
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ3_S) == 110);

}  // namespace coterie::blocks
