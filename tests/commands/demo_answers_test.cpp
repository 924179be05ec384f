#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/chat_session.h"
#include "cli/model_options.h"
#include "program.h"

// The demo model's greedy answers are those of an independent engine.
namespace coterie::commands_test {
namespace {

struct Demo {
    Demo() {
        cli::ModelOptions options;
        options.model = kModel;
        archive = cli::open_archive(options);
        tokenizer = cli::load_tokenizer(*archive, options);
        engine = cli::load_engine(archive, options);
    }

    std::shared_ptr<const gguf::Archive> archive;
    std::unique_ptr<Tokenizer> tokenizer;
    std::unique_ptr<engine::Engine> engine;
};

nlohmann::json reference_answers() {
    auto answers = nlohmann::json::parse(read_file(kDemoData + "answers.json")).at("answers");
    EXPECT_EQ(answers.size(), 30u);
    return answers;
}

TokenId most_likely(std::span<const float> logits) {
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenId> greedy_answer(Demo& demo, std::vector<TokenId> tokens, std::size_t limit) {
    engine::Sequence sequence = demo.engine->make_sequence();
    std::vector<TokenId> answer;
    while (answer.size() < limit) {
        const TokenId token = most_likely(demo.engine->extend(sequence, tokens));
        answer.push_back(token);
        tokens.push_back(token);
        if (demo.tokenizer->is_end_of_generation(token)) break;
    }
    return answer;
}

TEST(DemoAnswersTest, GreedyAnswersHaveTheReferenceIds) {
    Demo demo;
    for (const auto& reference : reference_answers()) {
        const auto expected = reference.at("answer_ids").get<std::vector<TokenId>>();
        const std::vector<TokenId> prompt = demo.tokenizer->encode(reference.at("prompt").get<std::string>(),
                                                                   {.special = SpecialTokens::Parse});
        EXPECT_EQ(greedy_answer(demo, prompt, expected.size() + 8), expected) << reference.at("question");
        EXPECT_EQ(demo.tokenizer->decode(expected), reference.at("answer").get<std::string>());
    }
}

TEST(DemoAnswersTest, TheChatTemplateMakesTheReferencePrompts) {
    Demo demo;
    const auto worker = std::make_shared<TemplateWorker>(WorkerOptions{});
    const ChatTemplate chat = cli::load_chat_template(worker, *demo.archive, *demo.tokenizer, {});
    for (const auto& reference : reference_answers()) {
        const Message message(Role::User, reference.at("question").get<std::string>());
        const std::string prompt = chat.render({.messages = to_json({&message, 1})});
        EXPECT_EQ(prompt, reference.at("prompt").get<std::string>());
        EXPECT_EQ(demo.tokenizer->encode(prompt, {.special = SpecialTokens::Parse, .ends = TextEnds::Mark}),
                  reference.at("prompt_ids").get<std::vector<TokenId>>());
    }
}

}  // namespace
}  // namespace coterie::commands_test
