#include <bit>

#include "quant/fp8.h"
#include "quant/half.h"
#include "quant/quantisers/block_quantisers.h"
#include "quant/quantisers/fit.h"
#include "quant/quantisers/nearest.h"

namespace coterie::blocks {
namespace {

/// The 4-bit codes of 32 values as all small blocks store them.
template <typename Encode>
void pack_nibbles(const float* x, std::uint8_t* qs, Encode encode) {
    for (int j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>(encode(x[j]) | encode(x[j + 16]) << 4);
}

/// The same for 5-bit codes; returns the fifth bits.
template <typename Encode>
std::uint32_t pack_five_bits(const float* x, std::uint8_t* qs, Encode encode) {
    pack_nibbles(x, qs, [&](float value) { return encode(value) & 15; });
    std::uint32_t fifth = 0;
    for (int j = 0; j < 32; ++j) fifth |= static_cast<std::uint32_t>(encode(x[j]) >> 4) << j;
    return fifth;
}

/// Code of a symmetric type: the largest magnitude gets code 0, zero gets code `zero`.
auto symmetric_encoder(float d, int zero) {
    return [inverse = inverse_or_zero(d), zero](float value) {
        return std::min(2 * zero - 1, static_cast<int>(value * inverse + static_cast<float>(zero) + 0.5f));
    };
}

/// Code of a type with a minimum.
auto range_encoder(float d, float minimum, int highest) {
    return [inverse = inverse_or_zero(d), minimum, highest](float value) {
        return std::min(highest, static_cast<int>((value - minimum) * inverse + 0.5f));
    };
}

}  // namespace

void quantise(const float* x, Q4_0& block) {
    const float d = signed_maximum(x, 32) / -8.0f;
    block.d = f32_to_f16(d);
    pack_nibbles(x, block.qs, symmetric_encoder(d, 8));
}

void quantise(const float* x, Q4_1& block) {
    const auto [low, high] = std::minmax_element(x, x + 32);
    const float d = (*high - *low) / 15.0f;
    block.d = f32_to_f16(d);
    block.m = f32_to_f16(*low);
    pack_nibbles(x, block.qs, range_encoder(d, *low, 15));
}

void quantise(const float* x, Q5_0& block) {
    const float d = signed_maximum(x, 32) / -16.0f;
    block.d = f32_to_f16(d);
    block.qh = pack_five_bits(x, block.qs, symmetric_encoder(d, 16));
}

void quantise(const float* x, Q5_1& block) {
    const auto [low, high] = std::minmax_element(x, x + 32);
    const float d = (*high - *low) / 31.0f;
    block.d = f32_to_f16(d);
    block.m = f32_to_f16(*low);
    block.qh = pack_five_bits(x, block.qs, range_encoder(d, *low, 31));
}

void quantise(const float* x, Q8_0& block) {
    const float d = std::fabs(signed_maximum(x, 32)) / 127.0f;
    const float inverse = inverse_or_zero(d);
    block.d = f32_to_f16(d);
    for (int j = 0; j < 32; ++j)
        block.qs[j] = static_cast<std::int8_t>(round_to_range(x[j] * inverse, -127, 127));
}

void quantise(const float* x, IQ4_NL& block) {
    block.d = f32_to_f16(fit_scale(x, 32, kIq4Values[0], nearest_iq4_value));
    const float inverse = inverse_or_zero(f16_to_f32(block.d));
    pack_nibbles(x, block.qs, [inverse](float value) { return nearest_iq4_index(value * inverse); });
}

void quantise(const float* x, MXFP4& block) {
    // The largest code is 6 = 1.5 * 2^2, so the scale is the power of two two below the maximum's.
    const std::uint32_t maximum = std::bit_cast<std::uint32_t>(std::fabs(signed_maximum(x, 32)));
    block.e = static_cast<std::uint8_t>(std::max(0, static_cast<int>(maximum >> 23) - 2));
    const float inverse = 1.0f / half_of_e8m0(block.e);
    pack_nibbles(x, block.qs, [inverse](float value) { return nearest_fp4_index(value * inverse); });
}

}  // namespace coterie::blocks
