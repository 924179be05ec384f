#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"
#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

TEST(LogitBias, AddsToItsTokens) {
    LogitBias sampler({{2, 1.5f}, {0, -1.0f}}, 3);
    EXPECT_THAT(changed_logits(sampler, {1, 2, 3}), ElementsAre(0.0f, 2.0f, 4.5f));
}

TEST(LogitBias, RepeatedTokensAddUp) {
    LogitBias sampler({{1, 1.0f}, {1, 2.0f}}, 3);
    EXPECT_THAT(changed_logits(sampler, {0, 0, 0}), ElementsAre(0.0f, 3.0f, 0.0f));
}

TEST(LogitBias, MinusInfinityForbids) {
    LogitBias sampler({{1, kForbidden}}, 2);
    EXPECT_THAT(changed_logits(sampler, {1, 2}), ElementsAre(1.0f, kForbidden));
    LogitBias all({{0, kForbidden}, {1, kForbidden}}, 2);
    EXPECT_THROW(changed_logits(all, {1, 2}), Error);
}

TEST(LogitBias, RefusesWhatIsNoTokenOrNoNumber) {
    EXPECT_THROW(LogitBias({{3, 1}}, 3), Error);
    EXPECT_THROW(LogitBias({{-1, 1}}, 3), Error);
    EXPECT_THROW(LogitBias({{1, NAN}}, 3), Error);
    EXPECT_THROW(LogitBias({{1, INFINITY}}, 3), Error);
}

}  // namespace
}  // namespace coterie
