#include "speculative/ngram_drafter.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace coterie::speculative {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<TokenId>;

TEST(NgramDrafter, GuessesWhatFollowedBefore) {
    NgramDrafter drafter(2, 4, 64);
    EXPECT_THAT(drafter.draft(Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2}, 4), ElementsAre(3, 4, 5, 6));
    EXPECT_THAT(drafter.draft(Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2, 3}, 2), ElementsAre(4, 5));
}

TEST(NgramDrafter, HasNoIdeaWithoutAMatch) {
    NgramDrafter drafter(3, 4, 64);
    EXPECT_THAT(drafter.draft(Tokens{}, 4), IsEmpty());
    EXPECT_THAT(drafter.draft(Tokens{1, 2, 3}, 4), IsEmpty());
    EXPECT_THAT(drafter.draft(Tokens{1, 2, 3, 9, 2, 3}, 4), IsEmpty());
    EXPECT_THAT(drafter.draft(Tokens{1, 2, 3, 9, 2, 3, 1, 2, 3}, 0), IsEmpty());
}

TEST(NgramDrafter, PrefersTheLongestMatchAndThenTheLatest) {
    NgramDrafter longest(1, 1, 64);
    EXPECT_THAT(longest.draft(Tokens{1, 2, 3, 50, 9, 3, 60, 1, 2, 3}, 1), ElementsAre(50));
    NgramDrafter latest(1, 1, 64);
    EXPECT_THAT(latest.draft(Tokens{8, 3, 50, 9, 3, 60, 7, 3}, 1), ElementsAre(60));
}

TEST(NgramDrafter, GoesOnWithItsOwnGuessWhereATextRepeatsItself) {
    NgramDrafter drafter(2, 7, 64);
    EXPECT_THAT(drafter.draft(Tokens{5, 1, 2, 3, 1, 2, 3}, 7), ElementsAre(1, 2, 3, 1, 2, 3, 1));
}

/// The drafter by its definition: no index, no limits.
Tokens plain_draft(const Tokens& tokens, std::size_t ngram, std::size_t most) {
    std::size_t longest = ngram - 1;
    std::size_t begin = 0;
    for (std::size_t end = tokens.size() - 1; end >= ngram; --end) {
        std::size_t length = 0;
        while (length < end && tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) ++length;
        if (length > longest) {
            longest = length;
            begin = end;
        }
    }
    Tokens draft;
    if (begin == 0) return draft;
    Tokens text = tokens;
    for (std::size_t i = 0; i < most; ++i) {
        draft.push_back(text[begin + i]);
        text.push_back(text[begin + i]);
    }
    return draft;
}

TEST(NgramDrafter, FindsWhatASearchOfTheWholeTextFinds) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const std::size_t ngram = 1 + random() % 4;
        const unsigned letters = 3 + random() % 12;
        NgramDrafter drafter(static_cast<std::int64_t>(ngram), 8, 60);
        Tokens tokens;
        while (tokens.size() < 60) {  // below kLinks and kLongEnough, which the plain search does not have
            for (std::size_t more = 1 + random() % 3; more > 0; --more) {
                tokens.push_back(static_cast<TokenId>(random() % letters));
            }
            const auto draft = drafter.draft(tokens, 8);
            const Tokens found(draft.begin(), draft.end());
            if (tokens.size() <= ngram) continue;
            EXPECT_EQ(found, plain_draft(tokens, ngram, 8));
        }
    }
}

TEST(NgramDrafter, EndsItsSearchInALongMonotoneText) {
    NgramDrafter drafter(3, 16, 200'000);
    Tokens tokens;
    for (int i = 0; i < 200'000; ++i) tokens.push_back(7);
    EXPECT_EQ(drafter.draft(tokens, 16).size(), 16u);
}

}  // namespace
}  // namespace coterie::speculative
