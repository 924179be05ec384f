#include "quant/codebooks/iq1.h"

#include "quant/codebooks/codebooks.h"
#include "quant/half.h"
#include "quant/types/nibbles.h"

namespace coterie::blocks {
namespace {

/// Writes the eight codes of a codebook entry in eighths.
void write_eighths(std::size_t entry, bool shift_down, std::int8_t* out) {
    const int shift = shift_down ? -1 : 1;
    for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::int8_t>(8 * kIq1Codebook[entry][i] + shift);
}

}  // namespace

PlainGroup IQ1_S::group(int g) const {
    const std::uint16_t word = qh[g];
    PlainGroup result{{}, f16_to_f32(d) * 0.125f * static_cast<float>(2 * ((word >> 12) & 7) + 1)};
    for (int l = 0; l < 4; ++l) {
        const std::size_t entry = qs[4 * g + l] | ((word >> (3 * l)) & 7u) << 8;
        write_eighths(entry, (word & 0x8000) != 0, result.codes.data() + 8 * l);
    }
    return result;
}

HalfScaledGroup IQ1_M::group(int g) const {
    const int pair = scales[g / 2] >> (6 * (g % 2));
    HalfScaledGroup result{{}, {2 * (pair & 7) + 1, 2 * ((pair >> 3) & 7) + 1}, d() * 0.125f};
    for (int l = 0; l < 4; ++l) {
        const int high = nibble(qh, 4 * g + l);
        const std::size_t entry = qs[4 * g + l] | (high & 7u) << 8;
        write_eighths(entry, (high & 8) != 0, result.codes.data() + 8 * l);
    }
    return result;
}

float IQ1_M::d() const {
    std::uint16_t half = 0;
    for (int i = 0; i < 4; ++i) half = static_cast<std::uint16_t>(half | (scales[i] >> 12) << (4 * i));
    return f16_to_f32(half);
}

void IQ1_M::set_d(std::uint16_t half) {
    for (int i = 0; i < 4; ++i) {
        scales[i] = static_cast<std::uint16_t>((scales[i] & 0x0fff) | ((half >> (4 * i)) & 15) << 12);
    }
}

}  // namespace coterie::blocks
