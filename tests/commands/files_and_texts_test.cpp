#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"

// tokenize, inspect and synth.
namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;

TEST(TokenizeTest, PrintsIdsAndPieces) {
    EXPECT_EQ(output_of({"tokenize", "-m", kModel, "-p", "<|im_end|>\\nassistant", "--ids"}),
              "[8191, 198, 284]\n");
    EXPECT_EQ(output_of({"tokenize", "-m", kModel, "-p", "<|im_end|>\\nassistant"}),
              "  8191 -> '<|im_end|>'\n   198 -> '\\n'\n   284 -> 'assistant'\n");
    const auto json =
        nlohmann::json::parse(output_of({"tokenize", "-m", kModel, "-p", "<|im_end|>\\n", "--json"}));
    EXPECT_EQ(json.at("ids"), (std::vector<int>{8191, 198}));
    EXPECT_EQ(json.at("pieces"), (std::vector<std::string>{"<|im_end|>", "\n"}));
}

TEST(TokenizeTest, TheCountIsPartOfTheJson) {
    const auto json = nlohmann::json::parse(
        output_of({"tokenize", "-m", kModel, "-p", "<|im_end|>\\n", "--json", "--show-count"}));
    EXPECT_EQ(json.at("count"), 2);
    EXPECT_EQ(json.at("ids").size(), 2u);
    EXPECT_THAT(output_of({"tokenize", "-m", kModel, "-p", "<|im_end|>\\n", "--ids", "--show-count"}),
                HasSubstr("]\nTotal number of tokens: 2\n"));
}

TEST(TokenizeTest, FilesThatAreNoTextAreRefused) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"tokenize", "-m", kModel, "-f", kModel},
          {"run", "-m", kModel, "-f", kModel},
          {"perplexity", "-m", kModel, "-f", kModel}})
        expect_error(command, 3, {kModel + ": byte 5 is 0x00"});
}

TEST(TokenizeTest, ReadsEscapesOfThePromptOnlyWhereWanted) {
    const std::string line_feed = output_of({"tokenize", "-m", kModel, "--ids"}, "a\nb");
    EXPECT_EQ(output_of({"tokenize", "-m", kModel, "--ids", "-p", "a\\nb"}), line_feed);
    const std::string backslash = output_of({"tokenize", "-m", kModel, "--ids"}, "a\\nb");
    EXPECT_EQ(output_of({"tokenize", "-m", kModel, "--ids", "--no-escape", "-p", "a\\nb"}), backslash);
    EXPECT_NE(line_feed, backslash);
}

TEST(TokenizeTest, SpecialTokensCanBePlainText) {
    const auto ids = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"tokenize", "-m", kModel, "--ids", "-p", "<|im_end|>"});
        return nlohmann::json::parse(output_of(more)).get<std::vector<int>>();
    };
    EXPECT_EQ(ids({}), std::vector<int>{8191});
    EXPECT_THAT(ids({"--no-parse-special"}), testing::Not(testing::Contains(8191)));
}

TEST(InspectTest, ShowsTheFileAsTextAndJson) {
    const std::string text = output_of({"inspect", kModel});
    EXPECT_THAT(text, HasSubstr("general.architecture"));
    EXPECT_THAT(text, HasSubstr("blk.1.ffn_down_exps.weight"));
    EXPECT_EQ(output_of({"inspect", "-m", kModel, "--no-tensors"}).find("blk.1.ffn_down_exps.weight"),
              std::string::npos);
    const auto json = nlohmann::json::parse(output_of({"inspect", "-m", kModel, "--json"}));
    EXPECT_EQ(json.at("metadata").at("general.architecture"), "glm4moe");
    EXPECT_FALSE(json.contains("bad_data"));
}

TEST(InspectTest, FindsDamagedWeights) {
    const auto good = nlohmann::json::parse(output_of({"inspect", "-m", kModel, "--json", "--check"}));
    EXPECT_TRUE(good.at("bad_data").empty());

    // A block of Q5_K begins with two halves; a NaN in the first of a tensor's.
    const auto tensors = good.at("tensors");
    const auto tensor = std::find_if(tensors.begin(), tensors.end(), [](const auto& t) {
        return t.at("name") == "blk.1.ffn_up_exps.weight";
    });
    ASSERT_NE(tensor, tensors.end());
    ASSERT_EQ(tensor->at("type"), "Q5_K");
    std::string bytes = read_file(kModel);
    const auto offset = tensor->at("offset").template get<std::size_t>();
    bytes[offset] = '\xff';
    bytes[offset + 1] = '\x7f';
    TemporaryFolder folder;
    write_file(folder.file("bad.gguf"), bytes);

    const Outcome outcome = run({"inspect", "-m", folder.file("bad.gguf"), "--json", "--check"});
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("blk.1.ffn_up_exps.weight, expert 0"));
    const auto found = nlohmann::json::parse(outcome.output).at("bad_data");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].at("tensor"), "blk.1.ffn_up_exps.weight");
    EXPECT_EQ(found[0].at("expert"), 0);
    EXPECT_EQ(found[0].at("blocks"), 1);
}

TEST(SynthTest, PlansWithoutWriting) {
    const std::string plan = output_of({"synth", "olmoe-1b-7b", "--layers", "2", "--plan"});
    EXPECT_THAT(plan, HasSubstr("olmoe-1b-7b"));
    EXPECT_NE(plan, output_of({"synth", "olmoe-1b-7b", "--layers", "2", "--skew", "0", "--plan"}));
}

TEST(SynthTest, WritesAModelThatRuns) {
    TemporaryFolder folder;
    const std::string model = folder.file("tiny.gguf");
    const std::string first = output_of({"synth", "tiny-qwen3moe", "--quant", "q4_k_m", "-o", model});
    EXPECT_THAT(first, HasSubstr(model));
    const std::string bytes = read_file(model);
    EXPECT_EQ(output_of({"synth", "tiny-qwen3moe", "--quant", "q4_k_m", "-o", model, "--force", "-t", "1"}),
              first);
    EXPECT_TRUE(read_file(model) == bytes);

    const auto result = nlohmann::json::parse(
        output_of({"bench", "-m", model, "-p", "0", "-n", "2", "-r", "1", "-o", "jsonl"}));
    EXPECT_THAT(result.at("model_type").get<std::string>(), HasSubstr("qwen3moe"));
}

TEST(SynthTest, RefusesWhatItCannotWrite) {
    expect_error({"synth", "olmoe-1b-7b", "--layers", "1"}, 2, {"-o"});
    expect_error({"synth", "no-such-model", "--plan"}, 2, {"no-such-model", "qwen3-30b-a3b"});
    expect_error({"synth", "--quant", "q99", "--plan"}, 2, {"q99", "q4_k_m"});
    TemporaryFolder folder;
    write_file(folder.file("model.gguf"), "kept");
    expect_error({"synth", "olmoe-1b-7b", "--layers", "1", "-o", folder.file("model.gguf")}, 2,
                 {"model.gguf"});
    EXPECT_EQ(read_file(folder.file("model.gguf")), "kept");
}

}  // namespace
}  // namespace coterie::commands_test
