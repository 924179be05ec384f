#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

// multiplier 1, base 2: the penalty is 2^(length - allowed length).
Dry dry(std::int64_t allowed_length, std::int64_t window = -1, std::vector<std::int32_t> breakers = {}) {
    return Dry(1, 2, allowed_length, window, std::move(breakers));
}

std::vector<float> penalties(Dry& sampler, const std::vector<std::int32_t>& tokens,
                             std::size_t vocabulary = 10) {
    accept_all(sampler, tokens);
    std::vector<float> changed = changed_logits(sampler, std::vector<float>(vocabulary, 0.0f));
    for (float& logit : changed) logit = -logit;
    return changed;
}

TEST(Dry, LowersTheTokenThatWouldProlongARepetition) {
    Dry sampler = dry(2);
    const std::vector<float> lowered = penalties(sampler, {1, 2, 3, 4, 0, 1, 2, 3});
    EXPECT_THAT(lowered, ElementsAre(0, 0, 0, 0, 2.0f, 0, 0, 0, 0, 0)) << "3 tokens repeated: 2^(3 - 2)";
}

TEST(Dry, ShorterThanAllowedCostsNothing) {
    Dry sampler = dry(4);
    EXPECT_THAT(penalties(sampler, {1, 2, 3, 4, 0, 1, 2, 3}), testing::Each(0.0f));
}

TEST(Dry, TheLongestRepetitionOfATokenCounts) {
    Dry sampler = dry(1);
    // "2 3" stood before 4 once after "1" (length 3) and once not (length 2); before 5 with length 1.
    const std::vector<float> lowered = penalties(sampler, {1, 2, 3, 4, 2, 3, 4, 3, 5, 1, 2, 3});
    EXPECT_EQ(lowered[4], 4.0f);
    EXPECT_EQ(lowered[5], 1.0f);
}

TEST(Dry, RepetitionsMayOverlapThemselves) {
    Dry sampler = dry(2);
    EXPECT_EQ(penalties(sampler, {7, 7, 7, 7, 7})[7], 4.0f) << "4 of the 5 tokens repeat: 2^(4 - 2)";
}

TEST(Dry, ABreakerEndsARepetition) {
    Dry whole = dry(1);
    EXPECT_EQ(penalties(whole, {1, 9, 2, 3, 4, 0, 1, 9, 2, 3})[4], 8.0f);
    Dry broken = dry(1, -1, {9});
    EXPECT_EQ(penalties(broken, {1, 9, 2, 3, 4, 0, 1, 9, 2, 3})[4], 2.0f);
}

TEST(Dry, BreakersAreNotLowered) {
    Dry sampler = dry(1, -1, {9});
    EXPECT_THAT(penalties(sampler, {2, 3, 9, 0, 2, 3}), testing::Each(0.0f));
}

TEST(Dry, LooksBackNoFurtherThanItsWindow) {
    Dry near = dry(2, 8);
    EXPECT_EQ(penalties(near, {1, 2, 3, 4, 0, 1, 2, 3})[4], 2.0f);
    Dry nearer = dry(2, 7);
    EXPECT_EQ(penalties(nearer, {1, 2, 3, 4, 0, 1, 2, 3})[4], 1.0f);
    Dry off = dry(2, 0);
    EXPECT_THAT(penalties(off, {1, 2, 3, 4, 0, 1, 2, 3}), testing::Each(0.0f));
}

TEST(Dry, LongRepetitionsStayFiniteAndTakeLinearTime) {
    Dry sampler(1, 100, 1, -1, {});
    const std::vector<float> lowered = penalties(sampler, std::vector<std::int32_t>(1'000'000, 3));
    EXPECT_EQ(lowered[3], 1e9f);
    EXPECT_EQ(lowered[2], 0.0f);
}

TEST(Dry, AgreesWithItsDefinitionOnRandomSequences) {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::int32_t> tokens(1 + static_cast<std::size_t>(random.uniform() * 40));
        for (auto& token : tokens) token = static_cast<std::int32_t>(random.uniform() * 3);
        const std::vector<std::int32_t> breakers =
            round % 2 ? std::vector<std::int32_t>{2} : std::vector<std::int32_t>{};
        std::vector<float> expected(3, 0.0f);
        for (std::size_t next = 1; next < tokens.size(); ++next) {
            std::size_t length = 0;
            while (length < next && tokens[next - 1 - length] == tokens[tokens.size() - 1 - length] &&
                   !(round % 2 && tokens[next - 1 - length] == 2)) {
                ++length;
            }
            if (length < 2 || (round % 2 && tokens[next] == 2)) continue;
            float& worst = expected[static_cast<std::size_t>(tokens[next])];
            worst = std::max(worst, std::min(std::exp2f(static_cast<float>(length) - 2), 1e9f));
        }
        Dry sampler = dry(2, -1, breakers);
        ASSERT_THAT(penalties(sampler, tokens, 3), testing::ElementsAreArray(expected)) << "round " << round;
    }
}

}  // namespace
}  // namespace coterie
