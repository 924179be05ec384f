#include "quant/types/legacy.h"

#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {
namespace {

/// Code j from a block's nibbles and fifth bits (`qh` = 0 where there are none), less `zero`.
Codes unpack(const std::uint8_t* qs, std::uint32_t qh, int zero) {
    Codes codes;
    for (int j = 0; j < 16; ++j) {
        const int low = low_nibble(qs[j]) | static_cast<int>((qh >> j) & 1u) << 4;
        const int high = high_nibble(qs[j]) | static_cast<int>((qh >> (j + 16)) & 1u) << 4;
        codes[j] = static_cast<std::int8_t>(low - zero);
        codes[j + 16] = static_cast<std::int8_t>(high - zero);
    }
    return codes;
}

Codes copy_codes(const std::int8_t* qs) {
    Codes codes;
    for (int j = 0; j < kGroupValues; ++j) codes[j] = qs[j];
    return codes;
}

}  // namespace

PlainGroup Q4_0::group(int) const { return {unpack(qs, 0, 8), f16_to_f32(d)}; }

MinimumGroup Q4_1::group(int) const { return {unpack(qs, 0, 0), f16_to_f32(d), f16_to_f32(m)}; }

PlainGroup Q5_0::group(int) const { return {unpack(qs, qh, 16), f16_to_f32(d)}; }

MinimumGroup Q5_1::group(int) const { return {unpack(qs, qh, 0), f16_to_f32(d), f16_to_f32(m)}; }

PlainGroup Q8_0::group(int) const { return {copy_codes(qs), f16_to_f32(d)}; }

PlainGroup Q8_1::group(int) const { return {copy_codes(qs), f16_to_f32(d)}; }

}  // namespace coterie::blocks
