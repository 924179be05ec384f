#include "models/blocks/rope.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace coterie::models {
namespace {

TEST(RopeTest, PlainFrequenciesFallGeometrically) {
    const auto frequencies = rope_frequencies(64, 1e6, {}, {});
    ASSERT_EQ(frequencies.size(), 32u);
    EXPECT_DOUBLE_EQ(frequencies[0], 1.0);
    EXPECT_NEAR(frequencies[16], 1e-3, 1e-15);
    EXPECT_EQ(rope_magnitude({}), 1.0);
}

TEST(RopeTest, LinearScalingDividesEveryFrequency) {
    const RopeScaling scaling{.kind = RopeScaling::Kind::Linear, .factor = 4.0};
    const auto plain = rope_frequencies(32, 1e4, {}, {});
    const auto scaled = rope_frequencies(32, 1e4, scaling, {});
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4.0);
    EXPECT_EQ(rope_magnitude(scaling), 1.0);
}

TEST(RopeTest, FactorsDivideTheirPairs) {
    const Vector factors = {1.0f, 2.0f, 8.0f, 1.0f};
    const auto plain = rope_frequencies(8, 1e4, {}, {});
    const auto divided = rope_frequencies(8, 1e4, {}, factors);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_DOUBLE_EQ(divided[i], plain[i] / static_cast<double>(factors[i]));
}

/// gpt-oss: fast pairs keep their frequency, slow ones are divided by the factor, those between blend.
TEST(RopeTest, YarnBlendsBetweenItsBounds) {
    const RopeScaling scaling{.kind = RopeScaling::Kind::Yarn, .factor = 32.0, .original_context = 4096};
    const auto plain = rope_frequencies(64, 150000.0, {}, {});
    const auto scaled = rope_frequencies(64, 150000.0, scaling, {});
    const auto bound = [](double rotations) {
        return 64.0 * std::log(4096.0 / (2.0 * std::numbers::pi * rotations)) / (2.0 * std::log(150000.0));
    };
    const auto low = static_cast<std::size_t>(std::floor(bound(32.0)));
    const auto high = static_cast<std::size_t>(std::ceil(bound(1.0)));
    ASSERT_LT(low, high);
    for (std::size_t i = 0; i <= low; ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i]) << i;
    for (std::size_t i = high; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 32.0) << i;
    for (std::size_t i = low + 1; i < high; ++i) {
        EXPECT_LT(scaled[i], plain[i]);
        EXPECT_GT(scaled[i], plain[i] / 32.0);
    }
    EXPECT_NEAR(rope_magnitude(scaling), 1.3466, 1e-4);
}

}  // namespace
}  // namespace coterie::models
