#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(TopK, KeepsTheMostProbableInOrder) {
    TopK sampler(3);
    EXPECT_THAT(kept_ids(sampler, {1, 5, 3, 4, 2}), ElementsAre(1, 3, 2));
}

TEST(TopK, TiesGoToLowerIds) {
    TopK sampler(2);
    EXPECT_THAT(kept_ids(sampler, {1, 2, 2, 2}), ElementsAre(1, 2));
}

TEST(TopK, MoreThanThereAreKeepsAll) {
    TopK sampler(5);
    EXPECT_THAT(kept_ids(sampler, {1, 2, 3}), testing::UnorderedElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace coterie
