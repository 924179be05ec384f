#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

const std::vector<double> kProbabilities{0.05, 0.4, 0.15, 0.3, 0.1};

TEST(Xtc, RemovesTheTopChoicesButTheLeast) {
    Xtc sampler(1, 0.12f);
    EXPECT_THAT(kept_ids(sampler, logits_of(kProbabilities)), ElementsAre(0, 2, 4))
        << "0.4 and 0.3 go, 0.15 stays";
}

TEST(Xtc, ASingleTopChoiceStays) {
    Xtc sampler(1, 0.35f);
    EXPECT_EQ(kept_ids(sampler, logits_of(kProbabilities)).size(), 5u);
    Xtc none(1, 0.5f);
    EXPECT_EQ(kept_ids(none, logits_of(kProbabilities)).size(), 5u);
}

TEST(Xtc, OfEqualChoicesTheLastStays) {
    Xtc sampler(1, 0.2f);
    EXPECT_THAT(kept_ids(sampler, {1, 1, 1}), ElementsAre(2));
}

TEST(Xtc, ActsWithItsProbability) {
    Xtc sampler(0.3f, 0.12f);
    Random random(5);
    Candidates candidates;
    int acted = 0;
    for (int i = 0; i < 10'000; ++i) {
        candidates.load(logits_of(kProbabilities));
        sampler.apply(candidates, random);
        acted += candidates.size() == 3;
    }
    EXPECT_NEAR(acted, 3000, 4 * 46) << "four standard deviations";
}

}  // namespace
}  // namespace coterie
