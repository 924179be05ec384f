#pragma once

#include "quant/types/group.h"

/// Blocks of 32 values with one binary16 scale and, in the `_1` types, one binary16 minimum. A 4-bit byte j
/// holds values j (low nibble) and j + 16 (high nibble).
namespace coterie::blocks {

struct [[gnu::packed]] Q4_0 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q4_0) == 18);

struct [[gnu::packed]] Q4_1 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint16_t m;
    std::uint8_t qs[16];
    MinimumGroup group(int g) const;
};
static_assert(sizeof(Q4_1) == 20);

/// Bit j of `qh` is the fifth bit of value j.
struct [[gnu::packed]] Q5_0 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint32_t qh;
    std::uint8_t qs[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q5_0) == 22);

struct [[gnu::packed]] Q5_1 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint16_t m;
    std::uint32_t qh;
    std::uint8_t qs[16];
    MinimumGroup group(int g) const;
};
static_assert(sizeof(Q5_1) == 24);

struct [[gnu::packed]] Q8_0 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::int8_t qs[32];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q8_0) == 34);

/// An activation format of other engines, only decoded here; `s` is d times the sum of the quants.
struct [[gnu::packed]] Q8_1 {
    static constexpr int kValues = 32;
    std::uint16_t d;
    std::uint16_t s;
    std::int8_t qs[32];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q8_1) == 36);

}  // namespace coterie::blocks
