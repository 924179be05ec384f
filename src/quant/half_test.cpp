#include "quant/half.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "base/split_mix.h"
#include "quant/fp8.h"

namespace coterie {
namespace {

/// The value by the format's definition.
double f16_by_definition(std::uint32_t half) {
    const int exponent = static_cast<int>((half >> 10) & 31);
    const double mantissa = half & 0x3ff;
    const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31)
        return mantissa == 0.0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024.0 + mantissa, exponent - 25);
}

TEST(Half, EveryCodeDecodesByDefinitionAndComesBack) {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto half = static_cast<std::uint16_t>(code);
        const double expected = f16_by_definition(code);
        const float decoded = f16_to_f32(half);
        if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(decoded)) << code;
            EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(decoded)))) << code;
            continue;
        }
        EXPECT_EQ(decoded, expected) << code;
        EXPECT_EQ(std::signbit(decoded), std::signbit(expected)) << code;
        EXPECT_EQ(f32_to_f16(decoded), half) << code;
    }
}

/// Between two neighbouring halves: the middle goes to the even one, everything else to the nearer one.
TEST(Half, RoundsToNearestEven) {
    for (std::uint32_t code = 0; code < 0x7bff; ++code) {
        const auto low = static_cast<std::uint16_t>(code);
        const auto high = static_cast<std::uint16_t>(code + 1);
        const float middle = 0.5f * (f16_to_f32(low) + f16_to_f32(high));  // exact: 12 bits
        EXPECT_EQ(f32_to_f16(middle), code % 2 == 0 ? low : high) << code;
        EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << code;
        EXPECT_EQ(f32_to_f16(std::nextafter(middle, 1e30f)), high) << code;
        EXPECT_EQ(f32_to_f16(-middle), f32_to_f16(middle) | 0x8000) << code;
    }
}

TEST(Half, TooLargeBecomesInfinity) {
    EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
    EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
    EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
    EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
    EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
    EXPECT_EQ(f32_to_f16(1e-30f), 0);
    EXPECT_EQ(f32_to_f16(-1e-30f), 0x8000);
}

TEST(Bfloat16, RoundsToNearestEven) {
    EXPECT_EQ(bf16_to_f32(0x3f80), 1.0f);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // middle, even below
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // middle, even above
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f807fffu)), 0x3f80);
    EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
    EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(Bfloat16, EveryCodeComesBackAndNaNStays) {
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const auto value = bf16_to_f32(static_cast<std::uint16_t>(code));
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << code;
        } else {
            EXPECT_EQ(f32_to_bf16(value), code);
        }
    }
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7fffffffu)))));
}

TEST(Fp8, E8M0IsAPowerOfTwo) {
    for (int code = 0; code < 256; ++code) {
        EXPECT_EQ(half_of_e8m0(static_cast<std::uint8_t>(code)), std::ldexp(1.0, code - 128)) << code;
    }
}

TEST(Fp8, UE4M3FollowsItsDefinition) {
    for (int code = 0; code < 256; ++code) {
        const int exponent = (code >> 3) & 15;
        const int mantissa = code & 7;
        double expected = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
        if ((code & 127) == 127) expected = 0.0;
        EXPECT_EQ(half_of_ue4m3(static_cast<std::uint8_t>(code)), 0.5 * expected) << code;
    }
}

}  // namespace
}  // namespace coterie
