#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace coterie::commands_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> bench(const std::string& format, std::vector<std::string> more) {
    std::vector<std::string> arguments{"bench", "-m", kModel, "-o", format};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

TEST(BenchTest, JsonSaysWhatWasMeasured) {
    const auto results =
        nlohmann::json::parse(output_of(bench("json", {"-p", "8,16", "-n", "4", "-r", "2"})));
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].at("n_prompt"), 8);
    EXPECT_EQ(results[1].at("n_prompt"), 16);
    EXPECT_EQ(results[2].at("n_gen"), 4);
    for (const auto& result : results) {
        EXPECT_EQ(result.at("n_evaluated"), result.at("n_prompt").get<int>() + result.at("n_gen").get<int>());
        EXPECT_EQ(result.at("samples_ts").size(), 2u);
        EXPECT_GT(result.at("avg_ts").get<double>(), 0.0);
        EXPECT_EQ(result.at("logits_checksum").get<std::string>().size(), 16u);
    }
    EXPECT_TRUE(results[0].at("weights_gb_s").is_null());
    EXPECT_GT(results[0].at("int_dot_peak_share").get<double>(), 0.0);
    EXPECT_GT(results[2].at("ram_read_share").get<double>(), 0.0);
    EXPECT_TRUE(results[2].at("weights_gflop_s").is_null());
}

TEST(BenchTest, TheChecksumDependsOnTheTokensAndOnNothingElse) {
    const auto checksums = [](std::vector<std::string> more) {
        std::istringstream lines(output_of(bench("jsonl", std::move(more))));
        std::vector<std::string> result;
        for (std::string line; std::getline(lines, line);) {
            result.push_back(nlohmann::json::parse(line).at("logits_checksum"));
        }
        return result;
    };
    // 12 tokens as a prompt, one by one, and the last 4 of them behind 8: the same last logits.
    const std::vector<std::string> whole = checksums({"-p", "12", "-n", "12", "-r", "1", "-t", "1"});
    ASSERT_EQ(whole.size(), 2u);
    EXPECT_EQ(whole[0], whole[1]);
    EXPECT_EQ(checksums({"-p", "0", "-n", "4", "-d", "8", "-r", "1", "-t", "2", "-b", "3", "--no-warmup"}),
              std::vector<std::string>{whole[0]});
    EXPECT_NE(checksums({"-p", "11", "-n", "0", "-r", "1"}), std::vector<std::string>{whole[0]});
}

TEST(BenchTest, CsvHasAsManyCellsAsColumns) {
    std::istringstream lines(output_of(bench("csv", {"-p", "4", "-n", "0", "-r", "1"})));
    std::string header;
    std::string row;
    std::string rest;
    ASSERT_TRUE(std::getline(lines, header) && std::getline(lines, row));
    EXPECT_FALSE(std::getline(lines, rest));
    EXPECT_THAT(header, HasSubstr("model_type,model_size,model_n_params"));
    // Every cell is quoted; no name or value of this run has a comma with quotes around it.
    std::size_t cells = 1;
    for (std::size_t at = 0; (at = row.find("\",\"", at)) != std::string::npos; ++at) ++cells;
    EXPECT_EQ(cells, static_cast<std::size_t>(std::count(header.begin(), header.end(), ',') + 1)) << row;
}

TEST(BenchTest, SaysWhatDevicesMoved) {
    const auto results = nlohmann::json::parse(
        output_of(bench("json", {"-p", "40", "-n", "12", "-r", "2", "--fake-gpu", "6M@10G/s",
                                 "--expert-cache", "24", "--cache-profile", "off"})));
    ASSERT_EQ(results.size(), 2u);
    for (const auto& result : results) {
        EXPECT_EQ(result.at("n_gpus"), 1);
        EXPECT_EQ(result.at("cache_policy"), "admit");
        const double hits = result.at("expert_hit_rate");
        EXPECT_TRUE(hits >= 0 && hits <= 1);
    }
    // What a token's experts read is the same on every path: from RAM, from slots, or on their way to them.
    const auto& generation = results[1];
    EXPECT_GT(generation.at("expert_hit_rate").get<double>(), 0.0);
    const double read = generation.at("expert_bytes_cpu").get<double>() +
                        generation.at("expert_bytes_slots").get<double>() +
                        generation.at("expert_bytes_fetched").get<double>();
    EXPECT_NEAR(read, 6 * 6 * 34816.0, 6 * 6 * 4000.0);
    EXPECT_GT(generation.at("limit_share").get<double>(), 0.0);
    EXPECT_TRUE(results[0].at("limit_share").is_null());
    const auto plain = nlohmann::json::parse(output_of(bench("json", {"-p", "40", "-n", "12", "-r", "2"})));
    EXPECT_TRUE(plain[1].at("expert_hit_rate").is_null());
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(plain[i].at("logits_checksum"), results[i].at("logits_checksum"));
    }
}

TEST(BenchTest, MeasuresEveryCombinationOfTheValuesGiven) {
    const auto results = nlohmann::json::parse(
        output_of(bench("json", {"-p", "0", "-n", "2", "-pg", "6,2", "-d", "0,4", "-r", "1", "-t", "1,2",
                                 "-b", "8", "-ub", "3,4", "-ctk", "f16,q8_0"})));
    ASSERT_EQ(results.size(), 2u * 2 * 2 * 4);
    std::size_t i = 0;
    for (const int batch : {3, 4}) {
        for (const char* keys : {"f16", "q8_0"}) {
            for (const int threads : {1, 2}) {
                for (const int depth : {0, 4}) {
                    for (const int prompt : {0, 6}) {
                        const auto& result = results[i++];
                        EXPECT_EQ(result.at("n_batch"), batch);
                        EXPECT_EQ(result.at("type_k"), keys);
                        EXPECT_EQ(result.at("n_threads"), threads);
                        EXPECT_EQ(result.at("n_depth"), depth);
                        EXPECT_EQ(result.at("n_prompt"), prompt);
                        EXPECT_EQ(result.at("n_gen"), 2);
                        EXPECT_EQ(result.at("n_evaluated"), prompt + 2);
                    }
                }
            }
        }
    }
    // 8 tokens are 8 tokens, however they are cut; with other keys they are not the same.
    const auto checksum = [&](std::size_t at) { return results[at].at("logits_checksum"); };
    EXPECT_EQ(checksum(1), checksum(5)) << "threads";
    EXPECT_EQ(checksum(1), checksum(17)) << "batch";
    EXPECT_NE(checksum(1), checksum(9)) << "type of keys";
}

TEST(BenchTest, SeveralModelsAreMeasuredOneAfterTheOther) {
    const auto results = nlohmann::json::parse(
        output_of({"bench", "-m", kModel, "-m", kModel, "-p", "0", "-n", "1", "-r", "1", "-o", "json"}));
    EXPECT_EQ(results.size(), 2u);
}

TEST(BenchTest, RefusesValuesOfListsThatCannotBe) {
    expect_error(bench("md", {"-t", "1,two"}), 2, {"--threads", "two"});
    expect_error(bench("md", {"-ctk", "f16,q9"}), 2, {"--cache-type-k", "q9"});
    for (const char* pair : {"512", "512,", "512,0", ",4", "a,4", "5,4,3", "1,99999999"})
        expect_error(bench("md", {"-pg", pair}), 2, {std::string("-pg ") + pair, "512,128"});
}

TEST(BenchTest, MarkdownIsATable) {
    Program program({"-m", kModel, "-p", "4", "-n", "2", "-r", "1"}, {.name = "llama-bench"});
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    std::istringstream lines(outcome.output);
    std::string line;
    for (const std::string expected : {"test", "---:", "pp4", "tg2"}) {
        ASSERT_TRUE(std::getline(lines, line));
        EXPECT_THAT(line, HasSubstr(expected));
        EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 12) << line;
    }
}

}  // namespace
}  // namespace coterie::commands_test
