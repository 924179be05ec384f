#include <array>

#include "quant/half.h"
#include "quant/quantisers/block_quantisers.h"
#include "quant/quantisers/fit.h"
#include "quant/quantisers/nearest.h"

namespace coterie::blocks {
namespace {

constexpr int kBlock = 256;

/// The integer scales of a super-block and the binary16 scale that multiplies them.
template <std::size_t kParts>
struct ScaleCodes {
    std::uint16_t d;
    std::array<int, kParts> codes;
    float scale(std::size_t part) const { return f16_to_f32(d) * static_cast<float>(codes[part]); }
};

template <std::size_t kParts>
ScaleCodes<kParts> encode_scales(const std::array<float, kParts>& scales, int lowest, int highest) {
    // The end of the range that is farther from zero takes the largest scale.
    const int end = lowest < -highest ? lowest : highest;
    ScaleCodes<kParts> result{
        f32_to_f16(signed_maximum(scales.data(), static_cast<int>(kParts)) / static_cast<float>(end)), {}};
    const float inverse = inverse_or_zero(f16_to_f32(result.d));
    for (std::size_t p = 0; p < kParts; ++p)
        result.codes[p] = round_to_range(scales[p] * inverse, lowest, highest);
    return result;
}

/// Scales for `kParts` equal parts of a block without minima.
template <std::size_t kParts, typename Nearest>
ScaleCodes<kParts> symmetric_scales(const float* x, int lowest_code, int lowest_scale, Nearest nearest) {
    constexpr int kSize = kBlock / static_cast<int>(kParts);
    std::array<float, kParts> scales;
    for (std::size_t p = 0; p < kParts; ++p) {
        scales[p] = fit_scale(x + static_cast<int>(p) * kSize, kSize, lowest_code, nearest);
    }
    return encode_scales(scales, lowest_scale, -lowest_scale - 1);
}

template <std::size_t kParts>
struct RangeScales {
    ScaleCodes<kParts> scales;
    ScaleCodes<kParts> minima;
};

/// Scales and minima for `kParts` equal parts of a block, codes 0 .. highest_code.
template <std::size_t kParts>
RangeScales<kParts> range_scales(const float* x, int highest_code, int highest_scale) {
    constexpr int kSize = kBlock / static_cast<int>(kParts);
    std::array<float, kParts> scales;
    std::array<float, kParts> minima;
    for (std::size_t p = 0; p < kParts; ++p) {
        const auto fit = fit_scale_and_minimum(x + static_cast<int>(p) * kSize, kSize, highest_code);
        scales[p] = fit.scale;
        minima[p] = fit.minimum;
    }
    return {encode_scales(scales, 0, highest_scale), encode_scales(minima, 0, highest_scale)};
}

/// The code of value i by the scales as stored.
template <std::size_t kParts>
int range_code(const float* x, int i, const RangeScales<kParts>& fit, int highest) {
    const std::size_t part = static_cast<std::size_t>(i) / (kBlock / kParts);
    return round_to_range((x[i] + fit.minima.scale(part)) * inverse_or_zero(fit.scales.scale(part)), 0,
                          highest);
}

auto nearest_integer(int lowest) {
    return [lowest](float value) { return round_to_range(value, lowest, -lowest - 1); };
}

void pack_two_bits(int i, int code, std::uint8_t* qs) {
    qs[32 * (i / 128) + i % 32] |= static_cast<std::uint8_t>(code << (2 * (i / 32 % 4)));
}

void pack_four_bits(int i, int code, std::uint8_t* qs) {
    qs[32 * (i / 64) + i % 32] |= static_cast<std::uint8_t>(code << (4 * (i / 32 % 2)));
}

template <typename Block>
RangeScales<8> store_range_scales(const float* x, int highest_code, Block& block) {
    const auto fit = range_scales<8>(x, highest_code, 63);
    block = {};
    block.d = fit.scales.d;
    block.dmin = fit.minima.d;
    block.scales.set(fit.scales.codes, fit.minima.codes);
    return fit;
}

}  // namespace

void quantise(const float* x, Q2_K& block) {
    const auto fit = range_scales<16>(x, 3, 15);
    block = {};
    block.d = fit.scales.d;
    block.dmin = fit.minima.d;
    for (std::size_t p = 0; p < 16; ++p) {
        block.scales[p] = static_cast<std::uint8_t>(fit.scales.codes[p] | fit.minima.codes[p] << 4);
    }
    for (int i = 0; i < kBlock; ++i) pack_two_bits(i, range_code(x, i, fit, 3), block.qs);
}

void quantise(const float* x, Q3_K& block) {
    const auto fit = symmetric_scales<16>(x, -4, -32, nearest_integer(-4));
    block = {};
    block.d = fit.d;
    for (int p = 0; p < 16; ++p) {
        const int biased = fit.codes[static_cast<std::size_t>(p)] + 32;
        block.scales[p % 8] |= static_cast<std::uint8_t>((biased & 15) << (4 * (p / 8)));
        block.scales[8 + p % 4] |= static_cast<std::uint8_t>((biased >> 4) << (2 * (p / 4)));
    }
    for (int i = 0; i < kBlock; ++i) {
        const float scale = fit.scale(static_cast<std::size_t>(i / 16));
        const int code = round_to_range(x[i] * inverse_or_zero(scale), -4, 3) + 4;
        pack_two_bits(i, code & 3, block.qs);
        block.hmask[i % 32] |= static_cast<std::uint8_t>((code >> 2) << (i / 32));
    }
}

void quantise(const float* x, Q4_K& block) {
    const auto fit = store_range_scales(x, 15, block);
    for (int i = 0; i < kBlock; ++i) pack_four_bits(i, range_code(x, i, fit, 15), block.qs);
}

void quantise(const float* x, Q5_K& block) {
    const auto fit = store_range_scales(x, 31, block);
    for (int i = 0; i < kBlock; ++i) {
        const int code = range_code(x, i, fit, 31);
        pack_four_bits(i, code & 15, block.qs);
        block.qh[i % 32] |= static_cast<std::uint8_t>((code >> 4) << (i / 32));
    }
}

void quantise(const float* x, Q6_K& block) {
    const auto fit = symmetric_scales<16>(x, -32, -128, nearest_integer(-32));
    block = {};
    block.d = fit.d;
    for (std::size_t p = 0; p < 16; ++p) block.scales[p] = static_cast<std::int8_t>(fit.codes[p]);
    for (int i = 0; i < kBlock; ++i) {
        const float scale = fit.scale(static_cast<std::size_t>(i / 16));
        const int code = round_to_range(x[i] * inverse_or_zero(scale), -32, 31) + 32;
        const int part = i / 32 % 4;
        block.ql[64 * (i / 128) + 32 * (part % 2) + i % 32] |=
            static_cast<std::uint8_t>((code & 15) << (4 * (part / 2)));
        block.qh[32 * (i / 128) + i % 32] |= static_cast<std::uint8_t>((code >> 4) << (2 * part));
    }
}

void quantise(const float* x, IQ4_XS& block) {
    const auto fit = symmetric_scales<8>(x, kIq4Values[0], -32, nearest_iq4_value);
    block = {};
    block.d = fit.d;
    for (int g = 0; g < 8; ++g) {
        const int biased = fit.codes[static_cast<std::size_t>(g)] + 32;
        block.scales_l[g / 2] |= static_cast<std::uint8_t>((biased & 15) << (4 * (g % 2)));
        block.scales_h = static_cast<std::uint16_t>(block.scales_h | (biased >> 4) << (2 * g));
        const float inverse = inverse_or_zero(fit.scale(static_cast<std::size_t>(g)));
        for (int l = 0; l < 32; ++l) {
            const int index = nearest_iq4_index(x[32 * g + l] * inverse);
            block.qs[16 * g + l % 16] |= static_cast<std::uint8_t>(index << (4 * (l / 16)));
        }
    }
}

}  // namespace coterie::blocks
