#include "expert_cache/prefetch/prefetch_judge.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace coterie::expert_cache {
namespace {

/// Steps that take one time with and another without, give or take noise; the share of them that prefetched.
double share_on(PrefetchJudge& judge, int steps, double with, double without, double noise = 0) {
    SplitMix64 random(7);
    int on = 0;
    for (int step = 0; step < steps; ++step) {
        on += judge.on() ? 1 : 0;
        const double late = random.next() % 50 == 0 ? 100 : 1;  // an interrupt now and then
        const double factor = 1 + noise * (2 * static_cast<double>(random.next_float()) - 1);
        judge.step_took(late * factor * (judge.on() ? with : without));
    }
    return static_cast<double>(on) / steps;
}

TEST(PrefetchJudgeTest, StaysOnWhereItPays) {
    PrefetchJudge judge;
    share_on(judge, 4 * PrefetchJudge::kBlockSteps, 9e-3, 10e-3);
    EXPECT_TRUE(judge.pays());
    EXPECT_NEAR(share_on(judge, 64 * PrefetchJudge::kBlockSteps, 9e-3, 10e-3), 7.0 / 8, 0.02);
}

TEST(PrefetchJudgeTest, GoesOffWhereItDoesNot) {
    PrefetchJudge judge;
    EXPECT_TRUE(judge.on());
    share_on(judge, 4 * PrefetchJudge::kBlockSteps, 11e-3, 10e-3);
    EXPECT_FALSE(judge.pays());
    EXPECT_NEAR(share_on(judge, 64 * PrefetchJudge::kBlockSteps, 11e-3, 10e-3), 1.0 / 8, 0.02);
    EXPECT_NEAR(judge.seconds_with(), 11e-3, 1e-6);
    EXPECT_NEAR(judge.seconds_without(), 10e-3, 1e-6);
}

TEST(PrefetchJudgeTest, SeesThroughNoise) {
    PrefetchJudge judge;
    EXPECT_LT(share_on(judge, 200 * PrefetchJudge::kBlockSteps, 11e-3, 10e-3, 0.2), 0.3);
}

TEST(PrefetchJudgeTest, ChangesItsMind) {
    PrefetchJudge judge;
    share_on(judge, 64 * PrefetchJudge::kBlockSteps, 11e-3, 10e-3);
    share_on(judge, 64 * PrefetchJudge::kBlockSteps, 9e-3, 10e-3);
    EXPECT_TRUE(judge.pays());
    EXPECT_GT(judge.share_on(), 0.3);
    EXPECT_LT(judge.share_on(), 0.7);
}

}  // namespace
}  // namespace coterie::expert_cache
