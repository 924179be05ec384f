#include "quant/codebooks/iq3.h"

#include "quant/codebooks/codebooks.h"
#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {

PlainGroup IQ3_XXS::group(int g) const {
    const std::uint32_t word = signs_and_scales[g];
    PlainGroup result{{}, f16_to_f32(d) * 0.25f * static_cast<float>(2 * (word >> 28) + 1)};
    for (int l = 0; l < 8; ++l) {
        const int signs = even_signs((word >> (7 * (l / 2))) & 127) >> (4 * (l % 2));
        write_signed(kIq3XxsCodebook[qs[8 * g + l]], static_cast<std::uint8_t>(signs),
                     result.codes.data() + 4 * l);
    }
    return result;
}

PlainGroup IQ3_S::group(int g) const {
    PlainGroup result{{}, f16_to_f32(d) * static_cast<float>(2 * nibble(scales, g) + 1)};
    for (int l = 0; l < 8; ++l) {
        const std::size_t entry = qs[8 * g + l] | ((qh[g] >> l) & 1u) << 8;
        const int entry_signs = nibble(signs, 8 * g + l);
        write_signed(kIq3SCodebook[entry], static_cast<std::uint8_t>(entry_signs),
                     result.codes.data() + 4 * l);
    }
    return result;
}

}  // namespace coterie::blocks
