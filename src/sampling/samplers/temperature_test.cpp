#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

using testing::FloatEq;

TEST(Temperature, DividesLogits) {
    Temperature sampler(0.5f);
    EXPECT_THAT(changed_logits(sampler, {1, -2, 3}), ElementsAre(2.0f, -4.0f, 6.0f));
}

TEST(Temperature, TheSmallestIsDecisiveAndFinite) {
    Temperature sampler(1e-30f);
    EXPECT_THAT(changed_logits(sampler, {1, 2, -INFINITY}),
                ElementsAre(FloatEq(1e6f), FloatEq(2e6f), -INFINITY));
}

TEST(Temperature, DynamicReachesItsEnds) {
    Temperature sampler(1.5f, 0.5f);
    EXPECT_THAT(changed_logits(sampler, {4, 4}), ElementsAre(FloatEq(2), FloatEq(2)))
        << "greatest entropy: 2";
    EXPECT_THAT(changed_logits(sampler, {4, -INFINITY}), ElementsAre(FloatEq(4), -INFINITY))
        << "no entropy: 1";
}

TEST(Temperature, DynamicFollowsTheShareOfEntropy) {
    // 0.9 and 0.1: entropy 0.32508 of log 2, a share of 0.46900; squared 0.21996.
    const std::vector<float> logits = logits_of({0.9, 0.1});
    Temperature linear(1, 1, 1);
    EXPECT_NEAR(changed_logits(linear, logits)[1], logits[1] / (2 * 0.46900), 1e-4);
    Temperature squared(1, 1, 2);
    EXPECT_NEAR(changed_logits(squared, logits)[1], logits[1] / (2 * 0.21996), 1e-3);
}

TEST(Temperature, DynamicNeverFallsBelowZero) {
    Temperature sampler(0.5f, 2);
    EXPECT_THAT(changed_logits(sampler, {1, -INFINITY}), ElementsAre(FloatEq(1e6f), -INFINITY));
}

}  // namespace
}  // namespace coterie
