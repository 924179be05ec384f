#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gguf/archive.h"
#include "tokenizer/streaming_detokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary/load_vocabulary.h"

namespace coterie {
namespace {

std::string read_data(const std::string& name) {
    std::ifstream file(COTERIE_SOURCE_DIR "/tests/data/tokenizer/" + name, std::ios::binary);
    if (!file) throw std::runtime_error("missing: " + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The vocabulary of the model that ships with the project, against ids of an independent tokenizer.
class DemoVocabulary : public testing::Test {
  protected:
    static const Tokenizer& tokenizer() {
        static const auto archive =
            gguf::Archive::open(COTERIE_SOURCE_DIR "/models/demo-dictionary-29m-q5_k_s.gguf");
        static const Tokenizer tokenizer(load_vocabulary(archive.metadata()));
        return tokenizer;
    }
};

TEST_F(DemoVocabulary, PromptsAndAnswersMatchTheReference) {
    const auto answers = nlohmann::json::parse(read_data("demo_answers.json"));
    ASSERT_EQ(answers.size(), 30);
    for (const auto& answer : answers) {
        const std::string prompt = answer["prompt"];
        EXPECT_EQ(tokenizer().encode(prompt, {.special = SpecialTokens::Parse}),
                  answer["prompt_ids"].get<std::vector<TokenId>>())
            << prompt;
        const auto ids = answer["answer_ids"].get<std::vector<TokenId>>();
        EXPECT_EQ(tokenizer().decode(ids), answer["answer"].get<std::string>());
        EXPECT_TRUE(tokenizer().is_end_of_generation(ids.back()));

        StreamingDetokenizer detokenizer(tokenizer());
        std::string streamed;
        for (const TokenId id : ids) streamed += detokenizer.add(id);
        EXPECT_EQ(streamed + detokenizer.flush(), answer["answer"].get<std::string>());
    }
}

TEST_F(DemoVocabulary, LongTextsHaveTheReferencesLengthAndReadBack) {
    const std::string plain = read_data("demo_plain.txt");
    const auto plain_ids = tokenizer().encode(plain);
    EXPECT_EQ(plain_ids.size(), 3247);
    EXPECT_EQ(tokenizer().decode(plain_ids), plain);

    const std::string chat = read_data("demo_chat.txt");
    const auto chat_ids = tokenizer().encode(chat, {.special = SpecialTokens::Parse});
    EXPECT_EQ(chat_ids.size(), 4149);
    EXPECT_EQ(tokenizer().decode(chat_ids, {.control = ControlTokens::Show}), chat);
}

TEST_F(DemoVocabulary, EveryControlTokensTextIsPlainTextForUsers) {
    const Vocabulary& vocabulary = tokenizer().vocabulary();
    int control_tokens = 0;
    for (TokenId id = 0; id < static_cast<TokenId>(vocabulary.size()); ++id) {
        if (vocabulary.type(id) != TokenType::Control) continue;
        ++control_tokens;
        EXPECT_THAT(tokenizer().encode(vocabulary.text(id), {.special = SpecialTokens::Parse}),
                    testing::ElementsAre(id));
        const auto plain = tokenizer().encode("x" + vocabulary.text(id));
        EXPECT_EQ(std::count(plain.begin(), plain.end(), id), 0);
        EXPECT_EQ(tokenizer().decode(plain), "x" + vocabulary.text(id));
    }
    EXPECT_EQ(control_tokens, 3);
}

TEST_F(DemoVocabulary, Roles) {
    EXPECT_EQ(tokenizer().vocabulary_size(), 8192);
    EXPECT_EQ(tokenizer().eos(), 8191);
    EXPECT_FALSE(tokenizer().adds_bos());
    EXPECT_THAT(tokenizer().vocabulary().end_of_generation(), testing::ElementsAre(8189, 8191));
}

}  // namespace
}  // namespace coterie
