#include "quant/types/four_bit_tables.h"

#include "quant/fp8.h"
#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {
namespace {

/// 2 * `bytes` values: the low nibbles, then the high nibbles.
void look_up(const std::array<std::int8_t, 16>& table, const std::uint8_t* qs, int bytes, std::int8_t* out) {
    for (int j = 0; j < bytes; ++j) {
        out[j] = table[low_nibble(qs[j])];
        out[j + bytes] = table[high_nibble(qs[j])];
    }
}

}  // namespace

PlainGroup IQ4_NL::group(int) const {
    PlainGroup result{{}, f16_to_f32(d)};
    look_up(kIq4Values, qs, 16, result.codes.data());
    return result;
}

PlainGroup IQ4_XS::group(int g) const {
    const int scale = nibble(scales_l, g) | ((scales_h >> (2 * g)) & 3) << 4;
    PlainGroup result{{}, f16_to_f32(d) * static_cast<float>(scale - 32)};
    look_up(kIq4Values, qs + 16 * g, 16, result.codes.data());
    return result;
}

PlainGroup MXFP4::group(int) const {
    PlainGroup result{{}, half_of_e8m0(e)};
    look_up(kFp4DoubledValues, qs, 16, result.codes.data());
    return result;
}

TwoScaleGroup NVFP4::group(int g) const {
    TwoScaleGroup result{{}, {half_of_ue4m3(d[2 * g]), half_of_ue4m3(d[2 * g + 1])}};
    look_up(kFp4DoubledValues, qs + 16 * g, 8, result.codes.data());
    look_up(kFp4DoubledValues, qs + 16 * g + 8, 8, result.codes.data() + kHalfValues);
    return result;
}

}  // namespace coterie::blocks
