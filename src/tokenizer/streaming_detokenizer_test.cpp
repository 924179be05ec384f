#include "tokenizer/streaming_detokenizer.h"

#include <gmock/gmock.h>
#include <random>

#include "tokenizer/small_vocabularies.h"
#include "tokenizer/utf8.h"

namespace coterie {
namespace {

/// The ids of a text, one a byte, in the small `gpt2` vocabulary.
std::vector<TokenId> one_a_byte(std::string_view text) {
    std::vector<TokenId> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
}

std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                                const DecodeOptions& options = {}) {
    StreamingDetokenizer detokenizer(tokenizer, options);
    std::vector<std::string> chunks;
    for (const TokenId id : ids) chunks.push_back(detokenizer.add(id));
    chunks.push_back(detokenizer.flush());
    return chunks;
}

std::string joined(const std::vector<std::string>& chunks) {
    std::string text;
    for (const std::string& chunk : chunks) text += chunk;
    return text;
}

bool is_utf8(std::string_view text) {
    for (std::size_t position = 0; position < text.size();) {
        const Utf8Step step = utf8_step(text, position);
        if (step.kind != Utf8Step::Kind::Character) return false;
        position += step.bytes;
    }
    return true;
}

class StreamingDetokenizerTest : public testing::Test {
  protected:
    Tokenizer tokenizer_{small_vocabularies::bpe()};
};

TEST_F(StreamingDetokenizerTest, ACharacterComesOutWhenItIsWhole) {
    EXPECT_THAT(stream(tokenizer_, one_a_byte("a\u00FC\U0001F999!")),
                testing::ElementsAre("a", "", "\u00FC", "", "", "", "\U0001F999", "!", ""));
}

TEST_F(StreamingDetokenizerTest, ACutCharacterIsReplacedAtTheEnd) {
    EXPECT_THAT(stream(tokenizer_, one_a_byte("a\xF0\x9F\xA6")),
                testing::ElementsAre("a", "", "", "", "\uFFFD"));
    StreamingDetokenizer detokenizer(tokenizer_);
    detokenizer.add(0xE2);
    EXPECT_EQ(detokenizer.flush(), "\uFFFD");
    EXPECT_EQ(detokenizer.flush(), "");
    EXPECT_EQ(detokenizer.add('a'), "a");
}

TEST_F(StreamingDetokenizerTest, BytesThatAreNoCharacterAreReplaced) {
    EXPECT_THAT(stream(tokenizer_, one_a_byte("\xFFz")), testing::ElementsAre("\uFFFD", "z", ""));
    EXPECT_THAT(stream(tokenizer_, one_a_byte("\xE2\x96z")), testing::ElementsAre("", "", "\uFFFDz", ""));
    EXPECT_THAT(stream(tokenizer_, one_a_byte("\xE2\xC3\xBC")),
                testing::ElementsAre("", "\uFFFD", "\u00FC", ""));
}

TEST_F(StreamingDetokenizerTest, ControlTokensShowOnlyWhenAsked) {
    const std::vector<TokenId> ids = {263, 259, 266, 264};
    EXPECT_EQ(joined(stream(tokenizer_, ids)), "hello<think>");
    EXPECT_EQ(joined(stream(tokenizer_, ids, {.control = ControlTokens::Show})),
              "<|im_start|>hello<think><|im_end|>");
}

TEST(StreamingDetokenizer, OnlyTheFirstSpaceOfATextIsDropped) {
    const Tokenizer tokenizer(small_vocabularies::sentence_piece());
    const std::vector<TokenId> ids = {1, 268, 268};
    EXPECT_THAT(stream(tokenizer, ids), testing::ElementsAre("", "w", " w", ""));
    EXPECT_THAT(stream(tokenizer, ids, {.leading_space = LeadingSpace::Keep}),
                testing::ElementsAre("", " w", " w", ""));
    EXPECT_EQ(joined(stream(tokenizer, ids, {.control = ControlTokens::Show})), "<s> w w");
}

TEST_F(StreamingDetokenizerTest, EveryChunkOfAnyStreamIsUtf8) {
    constexpr unsigned kSeed = 5;
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    for (int round = 0; round < 3000; ++round) {
        std::vector<TokenId> ids(random() % 20);
        for (TokenId& id : ids)
            id = static_cast<TokenId>(random() % 2 != 0 ? 0x80 + random() % 0x80 : random() % 268);
        const std::vector<std::string> chunks = stream(tokenizer_, ids);
        for (const std::string& chunk : chunks) ASSERT_TRUE(is_utf8(chunk)) << "round " << round;
        const std::string bytes = tokenizer_.decode(ids);
        if (is_utf8(bytes)) {
            ASSERT_EQ(joined(chunks), bytes) << "round " << round;
        }
    }
}

}  // namespace
}  // namespace coterie
