#pragma once

#include "quant/types/group.h"

/// Super-blocks of 256 values: binary16 scales for the block, small integer scales for 16 or 32 values.
namespace coterie::blocks {

/// 2 bits; a 4-bit scale (low nibble) and minimum (high nibble) for each 16 values.
struct [[gnu::packed]] Q2_K {
    static constexpr int kValues = 256;
    std::uint8_t scales[16];
    std::uint8_t qs[64];
    std::uint16_t d;
    std::uint16_t dmin;
    HalfMinimaGroup group(int g) const;
};
static_assert(sizeof(Q2_K) == 84);

/// 3 bits, the third in `hmask`; a 6-bit scale (biased by 32) for each 16 values.
struct [[gnu::packed]] Q3_K {
    static constexpr int kValues = 256;
    std::uint8_t hmask[32];
    std::uint8_t qs[64];
    std::uint8_t scales[12];
    std::uint16_t d;
    HalfScaledGroup group(int g) const;
};
static_assert(sizeof(Q3_K) == 110);

/// The twelve bytes in which Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minima.
struct [[gnu::packed]] ScalesAndMinima {
    std::uint8_t bytes[12];
    int scale(int k) const;
    int minimum(int k) const;
    void set(const std::array<int, 8>& scales, const std::array<int, 8>& minima);
};

/// 4 bits; a 6-bit scale and minimum for each 32 values.
struct [[gnu::packed]] Q4_K {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint16_t dmin;
    ScalesAndMinima scales;
    std::uint8_t qs[128];
    MinimumGroup group(int g) const;
};
static_assert(sizeof(Q4_K) == 144);

/// Q4_K with a fifth bit: bit g of `qh[l]` belongs to value l of group g.
struct [[gnu::packed]] Q5_K {
    static constexpr int kValues = 256;
    std::uint16_t d;
    std::uint16_t dmin;
    ScalesAndMinima scales;
    std::uint8_t qh[32];
    std::uint8_t qs[128];
    MinimumGroup group(int g) const;
};
static_assert(sizeof(Q5_K) == 176);

/// 6 bits, four in `ql`, two in `qh`; a signed 8-bit scale for each 16 values.
struct [[gnu::packed]] Q6_K {
    static constexpr int kValues = 256;
    std::uint8_t ql[128];
    std::uint8_t qh[64];
    std::int8_t scales[16];
    std::uint16_t d;
    HalfScaledGroup group(int g) const;
};
static_assert(sizeof(Q6_K) == 210);

/// An activation format of other engines, only decoded here; `bsums` are sums of 16 quants.
struct [[gnu::packed]] Q8_K {
    static constexpr int kValues = 256;
    float d;
    std::int8_t qs[256];
    std::int16_t bsums[16];
    PlainGroup group(int g) const;
};
static_assert(sizeof(Q8_K) == 292);

}  // namespace coterie::blocks
