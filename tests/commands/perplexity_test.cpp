#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"

namespace coterie::commands_test {
namespace {

/// Of tests/data/demo/README.md, computed in exact arithmetic; quantised activations may move them by 0.5 %.
constexpr double kPlainText = 15.6631;
constexpr double kChatText = 1.44746;
constexpr double kTolerance = 0.005;

TEST(PerplexityTest, OfAPlainTextIsTheReferences) {
    const auto result = nlohmann::json::parse(
        output_of({"perplexity", "-m", kModel, "-f", kDemoData + "perplexity.txt", "--json"}));
    EXPECT_NEAR(result.at("perplexity").get<double>(), kPlainText, kTolerance * kPlainText);
    EXPECT_EQ(result.at("tokens"), 3247);
    EXPECT_EQ(result.at("predicted_tokens"), 3240);
}

TEST(PerplexityTest, OfAChatIsTheReferences) {
    const auto result = nlohmann::json::parse(output_of(
        {"perplexity", "-m", kModel, "-f", kDemoData + "perplexity-chat.txt", "--special", "--json"}));
    EXPECT_NEAR(result.at("perplexity").get<double>(), kChatText, kTolerance * kChatText);
    EXPECT_EQ(result.at("tokens"), 4149);
    EXPECT_EQ(result.at("predicted_tokens"), 4140);
}

TEST(PerplexityTest, PrintsOneLineAndDoesNotDependOnTheBatch) {
    TemporaryFolder folder;
    write_file(folder.file("text"), read_file(kDemoData + "perplexity.txt").substr(0, 800));
    const std::string whole = output_of({"perplexity", "-m", kModel, "-f", folder.file("text"), "-c", "100"});
    EXPECT_THAT(whole, testing::StartsWith("perplexity "));
    EXPECT_EQ(whole.find('\n'), whole.size() - 1);
    EXPECT_EQ(whole,
              output_of({"perplexity", "-m", kModel, "-f", folder.file("text"), "-c", "100", "-b", "7"}));
    EXPECT_EQ(whole, output_of({"perplexity", "-m", kModel, "-f", folder.file("text"), "-c", "100",
                                "--fake-gpu", "8M@1G/s", "--expert-cache", "20"}));
}

TEST(PerplexityTest, RefusesATextWithNothingToPredict) {
    TemporaryFolder folder;
    write_file(folder.file("text"), "");
    expect_error({"perplexity", "-m", kModel, "-f", folder.file("text")}, 2, {"0 tokens"});
}

}  // namespace
}  // namespace coterie::commands_test
