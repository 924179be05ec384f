#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(MinP, KeepsWhatReachesAShareOfTheHighest) {
    const std::vector<float> logits = logits_of({0.05, 0.5, 0.1, 0.2, 0.15});
    MinP fifth(0.19f);
    EXPECT_THAT(kept_ids(fifth, logits), ElementsAre(1, 2, 3, 4)) << "0.1 >= 0.19 * 0.5";
    MinP third(0.35f);
    EXPECT_THAT(kept_ids(third, logits), ElementsAre(1, 3));
}

TEST(MinP, OneKeepsTheHighestAndItsEquals) {
    MinP sampler(1);
    EXPECT_THAT(kept_ids(sampler, {1, 3, 2, 3}), ElementsAre(1, 3));
}

}  // namespace
}  // namespace coterie
