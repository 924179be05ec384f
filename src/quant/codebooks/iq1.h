#pragma once

#include "quant/types/group.h"

/// About 1.6 bits a value: eight values are one entry of a ternary codebook, all moved by +1/8 or -1/8. Codes
/// count eighths, so that they stay integers: 8 * entry + 1 or 8 * entry - 1. A 3-bit scale s counts as d *
/// (2 s + 1).
namespace coterie::blocks {

struct [[gnu::packed]] IQ1_S {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint8_t qs[32];  ///< low 8 bits of the codebook entries
    std::uint16_t qh[8];  ///< four times 3 high bits, 3 bits of scale, the shift's sign
    PlainGroup group(int g) const;
};
static_assert(sizeof(IQ1_S) == 50);

/// One scale for each 16 values, one shift for each 8.
struct [[gnu::packed]] IQ1_M {
    static constexpr int kValues = 256;
    std::uint8_t qs[32];      ///< low 8 bits of the codebook entries
    std::uint8_t qh[16];      ///< nibbles: 3 high bits, the shift's sign
    std::uint16_t scales[4];  ///< four scales each in the low 12 bits; the high 4 bits together are d
    HalfScaledGroup group(int g) const;
    float d() const;
    void set_d(std::uint16_t half);
};
static_assert(sizeof(IQ1_M) == 56);

}  // namespace coterie::blocks
