#include "quant/activation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace coterie {
namespace {

constexpr std::int64_t kHalf = kGroupValues / 2;
constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// Below this the inverse of the scale would come near the end of binary32.
constexpr float kSmallestMaximum = 1e-35f;

/// The bits of max |x|: as integers, magnitudes order like the numbers, with infinity and then NaN on top.
std::uint32_t maximum_bits(const float* values, std::int64_t count) {
    std::uint32_t maximum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        maximum = std::max(maximum, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
    }
    return maximum;
}

/// Writes 32 quants, of which the first `count` come from `values`, and returns their scale.
float quantise_group(const float* values, std::int64_t count, std::int8_t* quants) {
    std::fill_n(quants, kGroupValues, std::int8_t{0});
    const std::uint32_t bits = maximum_bits(values, count);
    if (bits >= kInfinityBits) return std::numeric_limits<float>::quiet_NaN();
    const float maximum = std::bit_cast<float>(bits);
    if (maximum < kSmallestMaximum) return 0.0f;
    const float inverse = 127.0f / maximum;
    for (std::int64_t i = 0; i < count; ++i) {
        quants[i] = static_cast<std::int8_t>(std::lrint(values[i] * inverse));  // to nearest even
    }
    return maximum / 127.0f;
}

std::int16_t sum_of_half(const std::int8_t* quants) {
    int sum = 0;
    for (std::int64_t i = 0; i < kHalf; ++i) sum += quants[i];
    return static_cast<std::int16_t>(sum);
}

}  // namespace

void quantise_activation(const float* values, std::int64_t columns, const QuantisedActivation& out) {
    for (std::int64_t g = 0; g < activation_groups(columns); ++g) {
        const std::int64_t begin = g * kGroupValues;
        std::int8_t* quants = out.quants + begin;
        out.scales[g] = quantise_group(values + begin, std::min(kGroupValues, columns - begin), quants);
        out.half_sums[2 * g] = sum_of_half(quants);
        out.half_sums[2 * g + 1] = sum_of_half(quants + kHalf);
        out.scaled_sums[g] =
            out.scales[g] * static_cast<float>(out.half_sums[2 * g] + out.half_sums[2 * g + 1]);
    }
}

}  // namespace coterie
