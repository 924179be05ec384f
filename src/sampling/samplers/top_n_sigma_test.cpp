#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(TopNSigma, KeepsWhatLiesWithinNDeviationsOfTheHighest) {
    // mean 2, variance (4 + 4 + 1 + 1 + 0) / 5 = 2
    const std::vector<float> logits{0, 4, 1, 3, 2};
    TopNSigma one(1);
    EXPECT_THAT(kept_ids(one, logits), ElementsAre(1, 3)) << "down to 4 - 1.41";
    TopNSigma two(2);
    EXPECT_THAT(kept_ids(two, logits), ElementsAre(1, 3, 4)) << "down to 4 - 2.83";
}

TEST(TopNSigma, ForbiddenTokensDoNotCount) {
    TopNSigma sampler(1);
    EXPECT_THAT(kept_ids(sampler, {0, 4, -INFINITY, 1, 3, 2}), ElementsAre(1, 4));
}

TEST(TopNSigma, EqualLogitsAllStay) {
    TopNSigma sampler(1);
    EXPECT_THAT(kept_ids(sampler, {1, 1, 1}), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace coterie
