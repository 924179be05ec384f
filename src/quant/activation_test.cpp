#include "quant/activation.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "quant/activation_for_test.h"

namespace coterie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// 32 values, zero except the first ones.
ActivationForTest group_of(std::vector<float> values) {
    values.resize(32);
    return ActivationForTest(values);
}

void expect_all_quants_zero(const ActivationRow& row) {
    for (std::int64_t i = 0; i < activation_groups(row.columns) * kGroupValues; ++i)
        EXPECT_EQ(row.quants[i], 0) << i;
    for (std::int64_t h = 0; h < 2 * activation_groups(row.columns); ++h) EXPECT_EQ(row.half_sums[h], 0) << h;
}

TEST(QuantiseActivation, ScalesTheLargestMagnitudeTo127) {
    const auto activation = group_of({0.5f, -2.0f, 1.0f});
    const ActivationRow row = activation.row();
    EXPECT_EQ(row.scales[0], 2.0f / 127.0f);
    EXPECT_EQ(row.quants[0], 32);  // 31.75
    EXPECT_EQ(row.quants[1], -127);
    EXPECT_EQ(row.quants[2], 64);  // 63.5: to even
    EXPECT_EQ(row.half_sums[0], 32 - 127 + 64);
    EXPECT_EQ(row.half_sums[1], 0);
    EXPECT_EQ(row.scaled_sums[0], row.scales[0] * -31.0f);
}

TEST(QuantiseActivation, RoundsHalvesToEven) {
    const auto activation = group_of({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f});
    const std::vector<int> expected = {127, 0, 2, 2, 0, -2, -2};
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(activation.row().quants[i], expected[i]) << i;
}

TEST(QuantiseActivation, KeepsTheHalvesApart) {
    std::vector<float> values(32, 1.0f);
    for (std::size_t i = 16; i < 32; ++i) values[i] = -1.0f;
    const ActivationForTest activation(values);
    EXPECT_EQ(activation.row().half_sums[0], 16 * 127);
    EXPECT_EQ(activation.row().half_sums[1], -16 * 127);
    EXPECT_EQ(activation.row().scaled_sums[0], 0.0f);
}

TEST(QuantiseActivation, MakesTinyGroupsZero) {
    for (const float tiny : {0.0f, -0.0f, 1e-45f, -9.9e-36f}) {
        const auto activation = group_of({tiny, -tiny});
        EXPECT_EQ(activation.row().scales[0], 0.0f) << tiny;
        EXPECT_EQ(activation.row().scaled_sums[0], 0.0f) << tiny;
        expect_all_quants_zero(activation.row());
    }
}

TEST(QuantiseActivation, HandlesBothEndsOfTheRange) {
    for (const float end : {1e-35f, 1.5e-35f, std::numeric_limits<float>::max()}) {
        const auto activation = group_of({end, -end, end / 2});
        EXPECT_EQ(activation.row().scales[0], end / 127.0f) << end;
        EXPECT_EQ(activation.row().quants[0], 127) << end;
        EXPECT_EQ(activation.row().quants[1], -127) << end;
        EXPECT_NEAR(activation.row().quants[2], 63.5, 0.5) << end;
    }
}

TEST(QuantiseActivation, MarksInfinityAndNaNInTheScale) {
    for (const float bad : {kInfinity, -kInfinity, kNaN, -kNaN}) {
        const auto activation = group_of({1.0f, bad, 3.0f});
        EXPECT_TRUE(std::isnan(activation.row().scales[0]));
        EXPECT_TRUE(std::isnan(activation.row().scaled_sums[0]));
        expect_all_quants_zero(activation.row());
    }
}

TEST(QuantiseActivation, ABadGroupLeavesItsNeighboursAlone) {
    std::vector<float> values(96, 1.0f);
    values[40] = kNaN;
    const ActivationForTest activation(values);
    EXPECT_EQ(activation.row().scales[0], 1.0f / 127.0f);
    EXPECT_TRUE(std::isnan(activation.row().scales[1]));
    EXPECT_EQ(activation.row().scales[2], 1.0f / 127.0f);
}

TEST(QuantiseActivation, FillsAShortLastGroupWithZeros) {
    std::vector<float> padded(64, -1.0f);
    std::vector<std::int8_t> quants(64, 99);
    std::vector<float> scales(2, 99.0f);
    std::vector<float> sums(2, 99.0f);
    std::vector<std::int16_t> half_sums(4, 99);
    quantise_activation(padded.data(), 35, {quants.data(), scales.data(), sums.data(), half_sums.data()});
    for (std::size_t i = 0; i < 35; ++i) EXPECT_EQ(quants[i], -127) << i;
    for (std::size_t i = 35; i < 64; ++i) EXPECT_EQ(quants[i], 0) << i;
    EXPECT_EQ(half_sums[2], -3 * 127);
    EXPECT_EQ(half_sums[3], 0);
    EXPECT_EQ(scales[1], 1.0f / 127.0f);
}

TEST(QuantiseActivation, ErrsByHalfAStepAtMost) {
    const auto values = random_values_for_test(4096, 3);
    const ActivationForTest activation(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double step = activation.row().scales[i / 32];
        EXPECT_LE(std::fabs(activation.dequantised(i) - values[i]), 0.5001 * step) << i;
    }
}

}  // namespace
}  // namespace coterie
