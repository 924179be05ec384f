#include "cli/bench/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace coterie::cli::bench {
namespace {

Setup setup() {
    Setup result;
    result.model_file = "a \"quoted\", name.gguf";
    result.model_type = "test 1M F32";
    result.model_bytes = 3 << 20;
    result.model_parameters = 2'500'000;
    result.threads = 2;
    result.cost = {.embedding_bytes = 10,
                   .dense_bytes = 500,
                   .expert_bytes = 400,
                   .output_bytes = 90,
                   .layer_multiply_adds = 1000,
                   .output_multiply_adds = 200};
    result.read_rate = 40'000.0;
    result.integer_peak = 1e6;
    return result;
}

Measurement generation() {
    return {.test = {.prompt = 0, .generated = 10, .depth = 0},
            .start_time = "2026-01-01T00:00:00Z",
            .seconds = {1.0, 0.5},
            .logits_checksum = 0xabc};
}

Measurement prompt() {
    return {.test = {.prompt = 20, .generated = 0, .depth = 64},
            .start_time = "2026-01-01T00:00:00Z",
            .seconds = {2.0},
            .logits_checksum = 1};
}

std::string render(const std::string& format, const std::vector<Measurement>& measurements) {
    std::FILE* file = std::tmpfile();
    const auto facts = setup();
    const auto report = make_report(format, facts, file);
    report->begin();
    for (const Measurement& measurement : measurements) report->add(measurement);
    report->end();
    std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
    return text;
}

TEST(BenchReportTest, GenerationIsMeasuredAgainstMemory) {
    const Shares share = shares(setup(), generation());  // 15 tokens a second on average
    EXPECT_DOUBLE_EQ(share.bytes_per_second, 15'000.0);
    EXPECT_DOUBLE_EQ(share.of_read_rate, 0.375);
    EXPECT_EQ(share.operations_per_second, 0.0);
}

TEST(BenchReportTest, PromptsAreMeasuredAgainstTheCores) {
    const Shares share = shares(setup(), prompt());  // the output matrix counts once
    EXPECT_DOUBLE_EQ(share.operations_per_second, 2.0 * (20 * 1000 + 200) / 2.0);
    EXPECT_DOUBLE_EQ(share.of_integer_peak, 0.0202);
    EXPECT_EQ(share.bytes_per_second, 0.0);
}

TEST(BenchReportTest, JsonHoldsEverything) {
    const auto json = nlohmann::json::parse(render("json", {generation(), prompt()}));
    ASSERT_EQ(json.size(), 2u);
    EXPECT_EQ(json[0].at("model_filename"), "a \"quoted\", name.gguf");
    EXPECT_EQ(json[0].at("avg_ts"), 15.0);
    EXPECT_EQ(json[0].at("median_ts"), 15.0);
    EXPECT_NEAR(json[0].at("stddev_ts").get<double>(), 7.0710678, 1e-6);
    EXPECT_EQ(json[0].at("samples_ns"), (std::vector<std::int64_t>{1'000'000'000, 500'000'000}));
    EXPECT_EQ(json[0].at("logits_checksum"), "0000000000000abc");
    EXPECT_TRUE(json[0].at("weights_gflop_s").is_null());
    EXPECT_EQ(json[1].at("n_depth"), 64);
    EXPECT_TRUE(json[1].at("weights_gb_s").is_null());
    EXPECT_EQ(nlohmann::json::parse(render("json", {})), nlohmann::json::array());
}

TEST(BenchReportTest, CsvQuotesAndHasOneHeader) {
    const std::string text = render("csv", {generation(), prompt()});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
    EXPECT_NE(text.find(",\"a \"\"quoted\"\", name.gguf\","), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("build_version,"));
}

TEST(BenchReportTest, MarkdownIsForPeople) {
    const std::string text = render("md", {generation(), prompt()});
    EXPECT_NE(text.find(" 3.00 MiB |     2.50 M | CPU        |       2 |            tg10 |"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("15.00 ± 7.07"), std::string::npos) << text;
    EXPECT_NE(text.find("pp20 @ d64"), std::string::npos) << text;
    EXPECT_NE(text.find("38 %"), std::string::npos) << text;
}

TEST(BenchReportTest, RefusesOtherFormats) {
    const auto facts = setup();
    EXPECT_THROW(make_report("xml", facts, stdout), Error);
}

TEST(BenchStatisticsTest, OfOneAndOfSeveralValues) {
    EXPECT_EQ(statistics({4.0}).mean, 4.0);
    EXPECT_EQ(statistics({4.0}).deviation, 0.0);
    const Statistics several = statistics({9.0, 1.0, 2.0, 4.0});
    EXPECT_DOUBLE_EQ(several.mean, 4.0);
    EXPECT_DOUBLE_EQ(several.median, 3.0);
    EXPECT_NEAR(several.deviation, std::sqrt(38.0 / 3.0), 1e-12);
    EXPECT_EQ(statistics({3.0, 1.0, 2.0}).median, 2.0);
}

}  // namespace
}  // namespace coterie::cli::bench
