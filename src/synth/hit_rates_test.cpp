#include "synth/hit_rates.h"

#include <gtest/gtest.h>

namespace coterie::synth {
namespace {

RoutingModel qwen3_routing(double skew, std::int64_t topics = 1) {
    return RoutingModel(
        {.experts = 128, .used = 8, .skew = skew, .topics = topics, .topic_strength = 1.0, .seed = 1});
}

struct Expected {
    double skew, static_quarter, static_half, recent_quarter, recent_half;
};

/// Measured on synthetic files of this shape in another program: 4,096 random tokens, 128 experts, 8 used.
class HitRatesOfQwen3 : public testing::TestWithParam<Expected> {};

TEST_P(HitRatesOfQwen3, AreNearThoseMeasuredOnSuchFiles) {
    const Expected& expected = GetParam();
    const auto rates = simulate_hit_rates(qwen3_routing(expected.skew), {});
    ASSERT_EQ(rates.size(), 3u);
    EXPECT_NEAR(rates[0].static_list, expected.static_quarter, 0.02);
    EXPECT_NEAR(rates[1].static_list, expected.static_half, 0.02);
    EXPECT_NEAR(rates[0].least_recently_used, expected.recent_quarter, 0.02);
    EXPECT_NEAR(rates[1].least_recently_used, expected.recent_half, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Exponents, HitRatesOfQwen3,
                         testing::Values(Expected{0.0, 0.26, 0.51, 0.25, 0.50},
                                         Expected{0.5, 0.47, 0.69, 0.34, 0.61},
                                         Expected{0.8, 0.64, 0.81, 0.51, 0.74},
                                         Expected{1.0, 0.73, 0.86, 0.62, 0.81},
                                         Expected{1.2, 0.80, 0.91, 0.71, 0.86}));

TEST(HitRates, TopicsHelpACacheThatFollowsTheText) {
    const auto without = simulate_hit_rates(qwen3_routing(0.5), {});
    const auto with = simulate_hit_rates(qwen3_routing(0.5, 16), {});
    EXPECT_GT(with[0].least_recently_used, without[0].least_recently_used + 0.03);
    EXPECT_LT(with[0].static_list, without[0].static_list + 0.03);
}

TEST(HitRates, SameSeedGivesTheSameFigures) {
    const auto first = simulate_hit_rates(qwen3_routing(1.0), {});
    const auto second = simulate_hit_rates(qwen3_routing(1.0), {});
    for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(first[i].static_list, second[i].static_list);
        EXPECT_EQ(first[i].least_recently_used, second[i].least_recently_used);
    }
}

}  // namespace
}  // namespace coterie::synth
