#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
    const std::vector<float> logits = logits_of({0.05, 0.5, 0.1, 0.2, 0.15});
    TopP most(0.8f);
    EXPECT_THAT(kept_ids(most, logits), ElementsAre(1, 3, 4)) << "0.5 + 0.2 is not enough";
    TopP half(0.45f);
    EXPECT_THAT(kept_ids(half, logits), ElementsAre(1));
    TopP zero(0);
    EXPECT_THAT(kept_ids(zero, logits), ElementsAre(1));
}

TEST(TopP, CountsProbabilitiesOfWhatIsLeft) {
    Candidates candidates;
    Random random(1);
    candidates.load(logits_of({0.4, 0.3, 0.2, 0.1}));
    TopK(2).apply(candidates, random);
    TopP(0.55f).apply(candidates, random);
    EXPECT_EQ(candidates.size(), 1u) << "0.4 of 0.7 is 0.571";
}

TEST(TopP, FlatDistributionsKeepTheirShare) {
    TopP sampler(0.5f);
    const std::vector<std::int32_t> ids = kept_ids(sampler, std::vector<float>(10'000, 1.0f));
    EXPECT_NEAR(static_cast<double>(ids.size()), 5000, 1);
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<std::int32_t>(i));
}

}  // namespace
}  // namespace coterie
