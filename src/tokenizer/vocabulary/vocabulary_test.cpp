#include "tokenizer/vocabulary/vocabulary.h"

#include <functional>
#include <gmock/gmock.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A vocabulary of these texts, all of type normal.
VocabularyData of_texts(std::initializer_list<const char*> texts) {
    VocabularyData data;
    data.model = "gpt2";
    for (const char* text : texts) small_vocabularies::add(data, text, TokenType::Normal);
    return data;
}

std::string refusal(const std::function<void(VocabularyData&)>& damage) {
    VocabularyData data = small_vocabularies::bpe();
    damage(data);
    try {
        Vocabulary vocabulary(std::move(data));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidFile);
        return error.what();
    }
    return "no error";
}

TEST(Vocabulary, RefusesATableThatContradictsItself) {
    EXPECT_THAT(refusal([](auto& data) { data.tokens.clear(); }), HasSubstr("tokenizer.ggml.tokens"));
    EXPECT_THAT(refusal([](auto& data) { data.token_types.pop_back(); }),
                HasSubstr("267 entries for 268 tokens"));
    EXPECT_THAT(refusal([](auto& data) { data.token_types[9] = 7; }), HasSubstr("token 9 has type 7"));
    EXPECT_THAT(refusal([](auto& data) { data.scores = {1}; }), HasSubstr("tokenizer.ggml.scores"));
    EXPECT_THAT(refusal([](auto& data) { data.special.eos = 268; }), HasSubstr("eos_token_id is 268"));
    EXPECT_THAT(refusal([](auto& data) { data.special.padding = -2; }), HasSubstr("padding_token_id is -2"));
}

TEST(Vocabulary, MinusOneMeansNone) {
    VocabularyData data = small_vocabularies::bpe();
    data.special.padding = -1;
    EXPECT_EQ(Vocabulary(std::move(data)).special().padding, std::nullopt);
}

TEST(Vocabulary, WithoutTypesAllTokensAreNormal) {
    VocabularyData data = of_texts({"a", "b"});
    data.token_types.clear();
    const Vocabulary vocabulary(std::move(data));
    EXPECT_EQ(vocabulary.type(1), TokenType::Normal);
    EXPECT_EQ(vocabulary.find("b"), 1);
    EXPECT_EQ(vocabulary.find("c"), std::nullopt);
}

TEST(Vocabulary, TheLowestOfEqualTextsIsFound) {
    EXPECT_EQ(Vocabulary(of_texts({"a", "b", "b", ""})).find("b"), 1);
}

TEST(Vocabulary, SentencePieceDefaults) {
    const Vocabulary vocabulary(small_vocabularies::sentence_piece());
    EXPECT_EQ(vocabulary.special().bos, 1);
    EXPECT_EQ(vocabulary.special().eos, 2);
    EXPECT_EQ(vocabulary.special().unknown, 0);
    EXPECT_THAT(vocabulary.end_of_generation(), ElementsAre(2));
    VocabularyData explicit_ids = small_vocabularies::sentence_piece();
    explicit_ids.special.bos = 7;
    EXPECT_EQ(Vocabulary(std::move(explicit_ids)).special().bos, 7);
}

TEST(Vocabulary, GenerationEndsWithRolesAndWithWellKnownTexts) {
    VocabularyData data =
        of_texts({"a", "<|eot_id|>", "b", "[e~[", "c", "d", "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"});
    data.special.eos = 4;
    data.special.eom = 0;
    data.special.fim_padding = 5;
    const Vocabulary vocabulary(std::move(data));
    EXPECT_THAT(vocabulary.end_of_generation(), ElementsAre(0, 1, 3, 4, 5, 6));
    EXPECT_TRUE(vocabulary.is_end_of_generation(3));
    EXPECT_FALSE(vocabulary.is_end_of_generation(2));
    EXPECT_EQ(vocabulary.type(1), TokenType::Control);  // though the table says normal
    EXPECT_FALSE(vocabulary.is_shown(1));
    EXPECT_EQ(vocabulary.special().eot, 1);  // guessed
}

TEST(Vocabulary, AGivenEndOfTurnIsNotGuessed) {
    VocabularyData data = of_texts({"a", "<|im_end|>"});
    data.special.eot = 0;
    EXPECT_EQ(Vocabulary(std::move(data)).special().eot, 0);
}

TEST(Vocabulary, MarksOfCallsAreShownAndOtherControlTokensAreNot) {
    VocabularyData data = of_texts({"[TOOL_CALLS]", "[INST]", "<\uFF5Ctool\u2581sep\uFF5C>"});
    data.token_types = {3, 3, 3};
    const Vocabulary vocabulary(std::move(data));
    EXPECT_TRUE(vocabulary.is_shown(0));
    EXPECT_FALSE(vocabulary.is_shown(1));
    EXPECT_TRUE(vocabulary.is_shown(2));
}

TEST(Vocabulary, AHarmonyMessageEndIsNoEnd) {
    const Vocabulary harmony(of_texts({"<|start|>", "<|end|>", "<|message|>", "<|return|>", "<|call|>"}));
    EXPECT_THAT(harmony.end_of_generation(), ElementsAre(3, 4));
    EXPECT_EQ(harmony.special().eot, std::nullopt);
    EXPECT_TRUE(harmony.is_shown(0));
    EXPECT_TRUE(harmony.is_shown(2));
    EXPECT_FALSE(harmony.is_shown(1));

    const Vocabulary calls(of_texts({"<|end|>", "<|calls|>", "<|flush|>"}));
    EXPECT_THAT(calls.end_of_generation(), ElementsAre(1, 2));

    const Vocabulary plain(of_texts({"<|end|>", "<|call|>"}));
    EXPECT_THAT(plain.end_of_generation(), ElementsAre(0, 1));
    EXPECT_EQ(plain.special().eot, 0);
}

}  // namespace
}  // namespace coterie
