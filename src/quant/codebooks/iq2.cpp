#include "quant/codebooks/iq2.h"

#include "quant/codebooks/codebooks.h"
#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {
namespace {

HalfScaledGroup scaled_group(std::uint8_t scales, float d) {
    return {{}, {2 * low_nibble(scales) + 1, 2 * high_nibble(scales) + 1}, d * 0.125f};
}

}  // namespace

PlainGroup IQ2_XXS::group(int g) const {
    const std::uint32_t word = records[g].signs_and_scale;
    PlainGroup result{{}, f16_to_f32(d) * 0.125f * static_cast<float>(2 * (word >> 28) + 1)};
    for (int l = 0; l < 4; ++l) {
        const std::uint8_t signs = even_signs((word >> (7 * l)) & 127);
        write_signed(kIq2XxsCodebook[records[g].entries[l]], signs, result.codes.data() + 8 * l);
    }
    return result;
}

HalfScaledGroup IQ2_XS::group(int g) const {
    HalfScaledGroup result = scaled_group(scales[g], f16_to_f32(d));
    for (int l = 0; l < 4; ++l) {
        const std::uint16_t word = qs[4 * g + l];
        write_signed(kIq2XsCodebook[word & 511], even_signs(word >> 9), result.codes.data() + 8 * l);
    }
    return result;
}

HalfScaledGroup IQ2_S::group(int g) const {
    HalfScaledGroup result = scaled_group(scales[g], f16_to_f32(d));
    for (int l = 0; l < 4; ++l) {
        const std::size_t entry = qs[4 * g + l] | ((qh[g] >> (2 * l)) & 3u) << 8;
        write_signed(kIq2SCodebook[entry], signs[4 * g + l], result.codes.data() + 8 * l);
    }
    return result;
}

}  // namespace coterie::blocks
