#include "tokenizer/special_token_matcher.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using Tokens = SpecialTokenMatcher::Tokens;

class SpecialTokenMatcherTest : public testing::Test {
  protected:
    static VocabularyData data() {
        VocabularyData data = small_vocabularies::bpe();
        small_vocabularies::add(data, "<|im", TokenType::Control);         // 268
        small_vocabularies::add(data, "   ", TokenType::UserDefined);      // 269
        small_vocabularies::add(data, "  ", TokenType::UserDefined);       // 270
        small_vocabularies::add(data, "<unk>", TokenType::Unknown);        // 271
        small_vocabularies::add(data, "", TokenType::Control);             // 272
        small_vocabularies::add(data, "\u6F22\xFF", TokenType::Control);   // 273
        small_vocabularies::add(data, "<think>", TokenType::UserDefined);  // 274, as 266
        return data;
    }

    void expect_match(Tokens tokens, std::string_view text, std::size_t position, TokenId id,
                      std::size_t bytes) const {
        const auto match = SpecialTokenMatcher(vocabulary_, tokens).match_at(text, position);
        ASSERT_TRUE(match) << text;
        EXPECT_EQ(match->id, id) << text;
        EXPECT_EQ(match->bytes, bytes) << text;
    }
    void expect_none(Tokens tokens, std::string_view text, std::size_t position) const {
        EXPECT_FALSE(SpecialTokenMatcher(vocabulary_, tokens).match_at(text, position)) << text;
    }

    Vocabulary vocabulary_{data()};
};

TEST_F(SpecialTokenMatcherTest, TheLongestTokenWins) {
    expect_match(Tokens::All, "<|im_start|>", 0, 263, 12);
    expect_match(Tokens::All, "x<|im_end|>", 1, 264, 10);
    expect_match(Tokens::All, "<|im_other|>", 0, 268, 4);
    expect_match(Tokens::All, "<|im", 0, 268, 4);
    expect_match(Tokens::All, "<think>!!", 0, 267, 8);
    expect_match(Tokens::All, "<think>?", 0, 266, 7);
    expect_match(Tokens::All, "    ", 0, 269, 3);
    expect_match(Tokens::All, "    ", 2, 270, 2);
    expect_match(Tokens::All, "\u6F22\xFF", 0, 273, 4);
}

TEST_F(SpecialTokenMatcherTest, NothingStandsWhereNoTextIsComplete) {
    expect_none(Tokens::All, "<|i", 0);
    expect_none(Tokens::All, "<|im_start|>", 1);
    expect_none(Tokens::All, " ", 0);
    expect_none(Tokens::All, "hello", 0);
}

TEST_F(SpecialTokenMatcherTest, ControlTokensAreMatchedOnlyWhereWanted) {
    expect_match(Tokens::All, "<unk>", 0, 271, 5);
    expect_none(Tokens::UserDefined, "<unk>", 0);
    expect_none(Tokens::UserDefined, "<|im_start|>", 0);
    expect_match(Tokens::UserDefined, "<think>", 0, 266, 7);
}

TEST(SpecialTokenMatcher, RefusesTextsThatWouldMakeItSlow) {
    VocabularyData data = small_vocabularies::bpe();
    small_vocabularies::add(data, std::string(SpecialTokenMatcher::kMaxTokenBytes + 1, 'x'),
                            TokenType::Control);
    const Vocabulary vocabulary(std::move(data));
    EXPECT_NO_THROW(SpecialTokenMatcher(vocabulary, Tokens::UserDefined));
    EXPECT_THROW(SpecialTokenMatcher(vocabulary, Tokens::All), Error);
}

}  // namespace
}  // namespace coterie
