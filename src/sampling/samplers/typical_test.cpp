#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

// Probabilities 0.5, 0.2, 0.15, 0.1, 0.05: entropy 1.333 nats, information 0.693, 1.609, 1.897, 2.303, 2.996;
// so the distances are 0.640, 0.276, 0.564, 0.970, 1.662.
const std::vector<double> kProbabilities{0.5, 0.2, 0.15, 0.1, 0.05};

TEST(Typical, TakesTheNearestToTheEntropyFirst) {
    Typical least(0.1f);
    EXPECT_THAT(kept_ids(least, logits_of(kProbabilities)), ElementsAre(1));
    Typical third(0.3f);
    EXPECT_THAT(kept_ids(third, logits_of(kProbabilities)), ElementsAre(1, 2));
    Typical most(0.8f);
    EXPECT_THAT(kept_ids(most, logits_of(kProbabilities)), ElementsAre(1, 2, 0));
    Typical nearly(0.9f);
    EXPECT_THAT(kept_ids(nearly, logits_of(kProbabilities)), ElementsAre(1, 2, 0, 3));
}

TEST(Typical, DoesNotDependOnAnOffsetOfTheLogits) {
    std::vector<float> logits = logits_of(kProbabilities);
    for (float& logit : logits) logit += 20;
    Typical sampler(0.8f);
    EXPECT_THAT(kept_ids(sampler, logits), ElementsAre(1, 2, 0));
}

TEST(Typical, ForbiddenTokensComeLast) {
    Typical sampler(0.9f);
    EXPECT_THAT(kept_ids(sampler, {1, -INFINITY, 1}), ElementsAre(0, 2));
}

TEST(Typical, ZeroKeepsOne) {
    Typical sampler(0);
    EXPECT_THAT(kept_ids(sampler, logits_of(kProbabilities)), ElementsAre(1));
}

}  // namespace
}  // namespace coterie
