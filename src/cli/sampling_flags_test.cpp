#include "cli/sampling_flags.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie::cli {
namespace {

/// The flags as a command line gives them, in the order of its words.
SamplingFlags parse(std::vector<std::string> arguments) {
    CLI::App command;
    SamplingFlags flags;
    add_sampling_flags(command, flags);
    std::reverse(arguments.begin(), arguments.end());
    command.parse(arguments);
    return flags;
}

const Tokenizer& tokenizer() {
    static const Tokenizer small(small_vocabularies::bpe());
    return small;
}

constexpr std::int64_t kRows = 300;  ///< more than the vocabulary has tokens

std::int32_t most_likely_drawn(const std::vector<std::string>& arguments, std::vector<float> logits) {
    const auto sampler = make_sampler(parse(arguments), tokenizer(), kRows);
    return sampler->sample(logits);
}

TEST(SamplingFlagsTest, ReachTheirOptions) {
    const SamplingFlags flags = parse({"--temp", "0.25", "--top-k", "7", "-s", "42", "--mirostat", "2"});
    EXPECT_FLOAT_EQ(flags.options.temperature, 0.25f);
    EXPECT_EQ(flags.options.top_k, 7);
    EXPECT_EQ(flags.options.seed, 42);
    EXPECT_EQ(flags.options.mirostat, 2);
}

TEST(SamplingFlagsTest, BiasesMoveTheChoice) {
    std::vector<float> logits(kRows, 0.0f);
    logits[5] = 3.0f;
    logits[6] = 2.0f;
    EXPECT_EQ(most_likely_drawn({"--temp", "0"}, logits), 5);
    EXPECT_EQ(most_likely_drawn({"--temp", "0", "-l", "6+1.5"}, logits), 6);
    EXPECT_EQ(most_likely_drawn({"--temp", "0", "-l", "5-inf"}, logits), 6);
}

TEST(SamplingFlagsTest, RowsWithoutATokenAreNeverDrawn) {
    std::vector<float> logits(kRows, 0.0f);
    logits[kRows - 1] = 100.0f;
    logits[9] = 1.0f;
    EXPECT_EQ(most_likely_drawn({"--temp", "0"}, logits), 9);
}

TEST(SamplingFlagsTest, IgnoreEosBansEndTokens) {
    const TokenId end = *tokenizer().eos();
    std::vector<float> logits(kRows, 0.0f);
    logits[static_cast<std::size_t>(end)] = 100.0f;
    logits[9] = 1.0f;
    EXPECT_EQ(most_likely_drawn({"--temp", "0"}, logits), end);
    EXPECT_EQ(most_likely_drawn({"--temp", "0", "--ignore-eos"}, logits), 9);
}

TEST(SamplingFlagsTest, RefusesWhatItCannotRead) {
    for (const std::string bias : {"", "5", "5+", "+1", "x+1", "5+1x", "5+-1"}) {
        SamplingFlags flags;
        flags.logit_bias = {bias};
        flags.order = "top_k";
        EXPECT_THROW(make_sampler(flags, tokenizer(), kRows), Error) << bias;
    }
    EXPECT_THROW(make_sampler(parse({"--samplers", "magic"}), tokenizer(), kRows), Error);
    EXPECT_THROW(make_sampler(parse({"--top-p", "1.5"}), tokenizer(), kRows), Error);
}

}  // namespace
}  // namespace coterie::cli
