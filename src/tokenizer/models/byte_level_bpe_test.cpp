#include "tokenizer/models/byte_level_bpe.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using testing::ElementsAre;

std::vector<TokenId> encode(VocabularyData data, std::string_view text, std::string_view family = "qwen2") {
    const Vocabulary vocabulary(std::move(data));
    const ByteLevelBpe bpe(vocabulary, *find_pre_tokenizer_family(family));
    std::vector<TokenId> ids;
    bpe.encode(text, ids);
    return ids;
}

TEST(ByteLevelBpe, MergesInTheOrderOfTheList) {
    EXPECT_THAT(encode(small_vocabularies::bpe(), "hello"), ElementsAre(259));
    EXPECT_THAT(encode(small_vocabularies::bpe(), "hell"), ElementsAre(258));
    EXPECT_THAT(encode(small_vocabularies::bpe(), "ello"), ElementsAre('e', 257, 'o'));
    EXPECT_THAT(encode(small_vocabularies::bpe(), "hello world"), ElementsAre(259, 260, 'o', 'r', 'l', 'd'));
    EXPECT_THAT(encode(small_vocabularies::bpe(), ""), ElementsAre());
}

TEST(ByteLevelBpe, EqualPairsMergeFromTheLeft) {
    EXPECT_THAT(encode(small_vocabularies::bpe(), "aaaaaaa"), ElementsAre(262, 261, 'a'));
}

TEST(ByteLevelBpe, NothingMergesOverTheEdgeOfAFragment) {
    VocabularyData data = small_vocabularies::bpe();
    small_vocabularies::add_merge(data, "1", "2");
    EXPECT_THAT(encode(data, "12", "qwen2"), ElementsAre('1', '2'));
    EXPECT_THAT(encode(data, "12", "llama-bpe"), ElementsAre(268));
}

// " w" would be merged by rule, but "hew" is a token that no merge leads to.
TEST(ByteLevelBpe, WholeFragmentsGoFirstWhereTheFamilySaysSo) {
    VocabularyData data = small_vocabularies::bpe();
    const TokenId whole = small_vocabularies::add(data, "hew", TokenType::Normal);
    EXPECT_THAT(encode(data, "hew", "qwen2"), ElementsAre(256, 'w'));
    EXPECT_THAT(encode(data, "hew", "llama-bpe"), ElementsAre(whole));
}

TEST(ByteLevelBpe, AMergeWithoutTokenComesOutAsBytes) {
    VocabularyData data = small_vocabularies::bpe();
    data.merges.push_back("x y");
    data.merges.push_back("xy z");
    const TokenId whole = small_vocabularies::add(data, "xyz", TokenType::Normal);
    EXPECT_THAT(encode(data, "xy"), ElementsAre('x', 'y'));
    EXPECT_THAT(encode(data, "xyz"), ElementsAre(whole));
}

TEST(ByteLevelBpe, PlainTextNeverBecomesAControlToken) {
    VocabularyData data = small_vocabularies::bpe();
    data.merges.insert(data.merges.end(), {"i m", "im p"});
    small_vocabularies::add(data, "imp", TokenType::Control);
    EXPECT_THAT(encode(data, "imp", "qwen2"), ElementsAre('i', 'm', 'p'));
    EXPECT_THAT(encode(data, "imp", "llama-bpe"), ElementsAre('i', 'm', 'p'));
}

TEST(ByteLevelBpe, AByteWithoutTokenIsUnknownOrRefused) {
    VocabularyData data = small_vocabularies::bpe();
    data.token_types['x'] = static_cast<std::int32_t>(TokenType::Unused);
    EXPECT_THROW(encode(data, "x"), Error);
    data.special.unknown = 265;
    EXPECT_THAT(encode(data, "axb"), ElementsAre('a', 265, 'b'));
}

TEST(ByteLevelBpe, RefusesAMissingOrMalformedMergeList) {
    const auto message = [](std::vector<std::string> merges) {
        VocabularyData data = small_vocabularies::bpe();
        data.merges = std::move(merges);
        try {
            encode(data, "a");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidFile);
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_THAT(message({}),
                testing::AllOf(testing::HasSubstr("tokenizer.ggml.merges"), testing::HasSubstr("gpt2")));
    EXPECT_THAT(message({"a b", "ab"}), testing::HasSubstr("entry 1"));
    EXPECT_THAT(message({"a "}), testing::HasSubstr("entry 0"));
    EXPECT_THAT(message({""}), testing::HasSubstr("entry 0"));
}

TEST(ByteLevelBpe, TokensStandForBytes) {
    VocabularyData data = small_vocabularies::bpe();
    small_vocabularies::add(data, "raw text", TokenType::UserDefined);
    small_vocabularies::add(data, "\u0120w", TokenType::UserDefined);
    const Vocabulary vocabulary(std::move(data));
    const ByteLevelBpe bpe(vocabulary, *find_pre_tokenizer_family("qwen2"));
    EXPECT_EQ(bpe.bytes_of(260), " w");
    EXPECT_EQ(bpe.bytes_of(0xE2), "\xE2");
    EXPECT_EQ(bpe.bytes_of(264), "<|im_end|>");
    EXPECT_EQ(bpe.bytes_of(268), "raw text");
    EXPECT_EQ(bpe.bytes_of(269), "\u0120w");  // not written in the byte alphabet
}

}  // namespace
}  // namespace coterie
