#pragma once

#include "quant/types/group.h"

/// Types of one or two bits with one binary16 scale a block: signs (Q1_0), ternary digits (TQ1_0, TQ2_0) and
/// the four values -1, 0, 1, 2 (Q2_0).
namespace coterie::blocks {

/// Bit i (least significant first): set for +d, clear for -d.
struct [[gnu::packed]] Q1_0 {
    static constexpr int kValues = 128;
    std::uint16_t d;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q1_0) == 18);

/// Four consecutive codes a byte, least significant first.
struct [[gnu::packed]] Q2_0 {
    static constexpr int kValues = 64;
    std::uint16_t d;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q2_0) == 18);

/// Five ternary digits a byte, as a fixed-point fraction in base 3.
struct [[gnu::packed]] TQ1_0 {
    static constexpr int kValues = 256;
    std::uint8_t qs[48];  ///< digit n of bytes 0..31: values 32 n ...; of bytes 32..47: values 160 + 16 n ...
    std::uint8_t qh[4];   ///< digit n: values 240 + 4 n ...
    std::uint16_t d;
    PlainGroup group(int g) const;
};
static_assert(sizeof(TQ1_0) == 54);

struct [[gnu::packed]] TQ2_0 {
    static constexpr int kValues = 256;
    std::uint8_t qs[64];
    std::uint16_t d;
    PlainGroup group(int g) const;
};
static_assert(sizeof(TQ2_0) == 66);

}  // namespace coterie::blocks
