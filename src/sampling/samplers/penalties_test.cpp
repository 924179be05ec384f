#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

constexpr std::int64_t kVocabulary = 10;

TEST(Penalties, RepeatDividesPositiveAndMultipliesNegativeLogits) {
    Penalties sampler(kVocabulary, 64, 2.0f, 0, 0);
    accept_all(sampler, {0, 1, 1});
    EXPECT_THAT(changed_logits(sampler, {3, -3, 3, -3}), ElementsAre(1.5f, -6.0f, 3.0f, -3.0f));
}

TEST(Penalties, FrequencyCountsAndPresenceDoesNot) {
    Penalties sampler(kVocabulary, 64, 1.0f, 0.5f, 0.25f);
    accept_all(sampler, {1, 2, 1, 1});
    EXPECT_THAT(changed_logits(sampler, {1, 2, 1}),
                ElementsAre(1.0f, 2 - 3 * 0.5f - 0.25f, 1 - 0.5f - 0.25f));
}

TEST(Penalties, RepeatComesBeforeTheOthers) {
    Penalties sampler(kVocabulary, 64, 2.0f, 1.0f, 1.0f);
    sampler.accept(0);
    EXPECT_THAT(changed_logits(sampler, {6, 0}), ElementsAre(6.0f / 2 - 1 - 1, 0.0f));
}

TEST(Penalties, TokensLeaveTheWindow) {
    Penalties sampler(kVocabulary, 2, 1.0f, 1.0f, 0);
    accept_all(sampler, {0, 0, 1});
    EXPECT_THAT(changed_logits(sampler, {5, 5, 5}), ElementsAre(4.0f, 4.0f, 5.0f));
    sampler.accept(2);
    EXPECT_THAT(changed_logits(sampler, {5, 5, 5}), ElementsAre(5.0f, 4.0f, 4.0f));
}

TEST(Penalties, WindowZeroIsOffAndMinusOneIsTheWholeSequence) {
    Penalties off(kVocabulary, 0, 1.3f, 1, 1);
    accept_all(off, {0, 1});
    EXPECT_THAT(changed_logits(off, {5, 5}), ElementsAre(5.0f, 5.0f));
    Penalties whole(kVocabulary, -1, 1.0f, 1, 0);
    for (int i = 0; i < 1000; ++i) whole.accept(1);
    EXPECT_THAT(changed_logits(whole, {5, 5}), ElementsAre(5.0f, -995.0f));
}

TEST(Penalties, FindsTokensAmongReorderedCandidates) {
    Penalties sampler(kVocabulary, 64, 1.0f, 1.0f, 0);
    sampler.accept(1);
    Candidates candidates;
    Random random(1);
    candidates.load(std::vector<float>{1, 2, 3});
    candidates.sort_prefix(2);
    candidates.keep_first(2);
    sampler.apply(candidates, random);
    EXPECT_EQ(candidates[0].logit, 3.0f);
    EXPECT_EQ(candidates[1].logit, 1.0f);
}

}  // namespace
}  // namespace coterie
