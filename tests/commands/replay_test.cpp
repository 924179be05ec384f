#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "expert_cache/trace/trace_reader.h"
#include "program.h"

namespace coterie::commands_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Two answers of the demo model, recorded.
class ReplayTest : public ::testing::Test {
  protected:
    ReplayTest() {
        output_ = output_of({"run", "-m", kModel, "--temp", "0", "-n", "12", "--trace", trace_},
                            "define volcano\n/clear\ndefine river\n");
    }
    TemporaryFolder folder_;
    const std::string trace_ = folder_.file("demo.trace");
    std::string output_;
};

TEST_F(ReplayTest, RecordingChangesNothingAndHoldsEveryComputedToken) {
    EXPECT_EQ(output_, output_of({"run", "-m", kModel, "--temp", "0", "-n", "12"},
                                 "define volcano\n/clear\ndefine river\n"));
    const std::string bytes = read_file(trace_);
    const expert_cache::TraceReader trace(std::as_bytes(std::span(bytes)), "trace");
    EXPECT_EQ(trace.warning(), "");
    EXPECT_EQ(trace.header().experts, 64);
    EXPECT_EQ(trace.header().used, 6);
    ASSERT_EQ(trace.header().layers.size(), 6u);  // of the trunk, behind one dense layer
    EXPECT_EQ(trace.header().layers.front().layer, 1);
    EXPECT_EQ(trace.header().layers.front().expert_bytes, 34u << 10);
    // Each answer: the prompt in one step, then a step for each of its 12 tokens but the last.
    EXPECT_EQ(trace.step(trace.tokens() - 1) + 1, 2u * 12u);
    std::vector<std::int32_t> experts(6 * 6);
    for (std::int64_t token = 0; token < trace.tokens(); ++token) {
        trace.read(token, experts);
        EXPECT_THAT(experts, ::testing::Each(::testing::Ge(0))) << "token " << token;
    }
}

TEST_F(ReplayTest, AnswersForEveryPolicyAndSlotCount) {
    const auto json = nlohmann::json::parse(
        output_of({"replay", trace_, "--policy", "lru,belady,static", "--slots", "25%,64", "-o", "json"}));
    EXPECT_EQ(json.at("tokens"), 22);
    const auto& results = json.at("results");
    ASSERT_EQ(results.size(), 6u);
    EXPECT_EQ(results.at(0).at("policy"), "lru");
    EXPECT_EQ(results.at(0).at("slots"), 16);
    EXPECT_EQ(results.at(0).at("uses"), 22 * 6 * 6);
    EXPECT_EQ(results.at(5).at("policy"), "static");
    EXPECT_EQ(results.at(5).at("hit_rate"), 1.0);
}

TEST_F(ReplayTest, PrintsATableOfAllPoliciesAndDrawsThem) {
    const std::string plot = folder_.file("plot.svg");
    const std::string table = output_of({"replay", trace_, "--plot", plot});
    for (const char* policy : {"admit", "arc", "belady", "lfu", "lru", "slru", "static"}) {
        EXPECT_THAT(table, HasSubstr(std::string("| ") + policy));
        EXPECT_THAT(read_file(plot), HasSubstr(std::string(">") + policy + "<"));
    }
    EXPECT_EQ(output_of({"replay", trace_}), table) << "a replay repeats itself";
}

TEST_F(ReplayTest, ReadsACutTraceWithOneWarning) {
    const std::string bytes = read_file(trace_);
    write_file(folder_.file("cut.trace"), bytes.substr(0, bytes.size() - 100));
    const Outcome outcome = run({"replay", folder_.file("cut.trace"), "--policy", "lru", "--slots", "10%"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("cut.trace"), HasSubstr("cut; its first")));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1);
}

TEST_F(ReplayTest, RefusesWhatCannotBeReplayed) {
    expect_error({"replay", folder_.file("none")}, 3, {"none", "no such file"});
    expect_error({"replay", kModel}, 3, {"byte 0", "no routing trace", "--trace"});
    std::string damaged = read_file(trace_);
    damaged[damaged.size() / 2] ^= 1;
    write_file(folder_.file("damaged.trace"), damaged);
    expect_error({"replay", folder_.file("damaged.trace")}, 3, {"damaged.trace", "byte ", "checksum"});
    expect_error({"replay", trace_, "--policy", "mru"}, 2, {"'mru'", "admit", "belady", "static"});
    expect_error({"replay", trace_, "--slots", "65"}, 2, {"--slots 65", "64"});
    expect_error({"replay", trace_, "--link", "0"}, 2, {"--link 0"});
    expect_error({"replay", trace_, "-o", "md"}, 2, {"md", "csv"});
    expect_error({"replay", trace_, "--plot", "x.png"}, 2, {"x.png", "SVG"});
    expect_error({"replay"}, 2, {"trace"});
}

TEST_F(ReplayTest, SaysWhenATraceHoldsOnlyAPrompt) {
    const std::string prompt = folder_.file("prompt.trace");
    output_of({"run", "-m", kModel, "-n", "0", "--trace", prompt, "Hello"});
    expect_error({"replay", prompt}, 2, {"--prompts"});
    const auto json = nlohmann::json::parse(output_of({"replay", prompt, "--prompts", "-o", "json"}));
    EXPECT_EQ(json.at("tokens"), 9);
}

TEST(TraceFlagTest, NamesAFileThatCannotBeWritten) {
    expect_error({"run", "-m", kModel, "--trace", "/nowhere/x.trace", "Hello"}, 5, {"/nowhere/x.trace"});
}

}  // namespace
}  // namespace coterie::commands_test
