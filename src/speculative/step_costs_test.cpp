#include "speculative/step_costs.h"

#include <gtest/gtest.h>
#include <random>

namespace coterie::speculative {
namespace {

TEST(StepCosts, KnowsNothingAtFirst) {
    const StepCosts costs;
    EXPECT_EQ(costs.seconds(4), 0.0);
    EXPECT_EQ(costs.seconds_per_token(), 0.0);
}

TEST(StepCosts, FindsTheLineThroughTheSteps) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> noise(0.9, 1.1);
        StepCosts costs;
        for (int i = 0; i < 500; ++i) {
            const auto tokens = static_cast<std::int64_t>(1 + random() % 9);
            costs.observe(tokens, (0.010 + 0.002 * static_cast<double>(tokens)) * noise(random));
        }
        EXPECT_NEAR(costs.seconds_per_token(), 0.002, 0.0005);
        EXPECT_NEAR(costs.seconds(5), 0.020, 0.001);
    }
}

TEST(StepCosts, FollowsAChange) {
    StepCosts costs;
    for (int i = 0; i < 300; ++i) costs.observe(1 + i % 4, 0.001);
    for (int i = 0; i < 600; ++i) costs.observe(1 + i % 4, 0.002 * (1 + i % 4));
    EXPECT_NEAR(costs.seconds_per_token(), 0.002, 0.0001);
}

TEST(StepCosts, KeepsItsSlopeWhileAllStepsAreAlike) {
    StepCosts costs;
    for (int i = 0; i < 50; ++i) costs.observe(1 + i % 8, 0.001 * (1 + i % 8));
    for (int i = 0; i < 5000; ++i) costs.observe(1, 0.001);
    EXPECT_NEAR(costs.seconds_per_token(), 0.001, 1e-9);
}

TEST(StepBudget, TakesWhatRaisesTheRate) {
    StepCosts costs;
    for (int i = 0; i < 100; ++i) costs.observe(1 + i % 4, 0.008 + 0.002 * (1 + i % 4));
    StepBudget one(costs, 1);  // 10 ms for a token; another one adds 2 ms
    EXPECT_FALSE(one.take(0.15));
    EXPECT_TRUE(one.take(0.25));
    StepBudget many(costs, 16);  // 40 ms for 16: 2.5 ms each
    EXPECT_FALSE(many.take(0.7));
    EXPECT_TRUE(many.take(0.9));
}

TEST(StepBudget, StopsWhereFurtherTokensCostMoreThanTheyGive) {
    StepCosts costs;
    for (int i = 0; i < 100; ++i) costs.observe(1 + i % 4, 0.002 * (1 + i % 4));
    StepBudget budget(costs, 1);  // nothing is shared: only a certain token would not slow it down
    EXPECT_FALSE(budget.take(0.95));
}

TEST(StepBudget, TriesWhereCostsAreNotKnown) {
    StepCosts costs;
    for (int i = 0; i < 10; ++i) costs.observe(1, 0.010);
    StepBudget budget(costs, 1);
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(budget.take(0.01));
}

}  // namespace
}  // namespace coterie::speculative
