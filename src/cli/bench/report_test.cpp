#include "cli/bench/report.h"

#include <array>
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

/// As on a GPU: 10 tokens twice, of which half of the experts' uses hit.
Setup gpu_setup() {
    Setup result = setup();
    result.gpu = "a card";
    result.gpus = 1;
    result.cache_policy = "admit";
    return result;
}
Measurement gpu_generation() {
    Measurement result = generation();
    result.cache = {.hits = 100,
                    .misses = 100,
                    .cpu_bytes = 3000,
                    .slot_bytes = 4000,
                    .uploaded_bytes = 600,
                    .linked_bytes = 1000,
                    .cpu_uses = 75};
    result.rates = {.ram = 10'000, .links = 2'000, .devices = 100'000};
    return result;
}

std::string render(const std::string& format, const std::vector<Measurement>& measurements,
                   const Setup& facts = setup(), const std::vector<std::string>& columns = {}) {
    std::FILE* file = std::tmpfile();
    const auto report = make_report(format, columns, file);
    for (const Measurement& measurement : measurements) report->add(facts, measurement);
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

/// What programs that read llama-bench's output look for.
TEST(BenchReportTest, HasAllOfLlamaBenchsFields) {
    const auto json = nlohmann::json::parse(render("json", {generation()}))[0];
    for (const char* name : {"build_commit",   "build_number",
                             "cpu_info",       "gpu_info",
                             "backends",       "model_filename",
                             "model_type",     "model_size",
                             "model_n_params", "n_batch",
                             "n_ubatch",       "n_threads",
                             "cpu_mask",       "cpu_strict",
                             "poll",           "type_k",
                             "type_v",         "n_gpu_layers",
                             "n_cpu_moe",      "split_mode",
                             "main_gpu",       "no_kv_offload",
                             "flash_attn",     "devices",
                             "tensor_split",   "tensor_buft_overrides",
                             "load_mode",      "embeddings",
                             "no_op_offload",  "no_host",
                             "fit_target",     "fit_min_ctx",
                             "n_prompt",       "n_gen",
                             "n_depth",        "test_time",
                             "avg_ns",         "stddev_ns",
                             "avg_ts",         "stddev_ts",
                             "samples_ns",     "samples_ts"})
        EXPECT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json.at("build_number").is_number_integer());
    EXPECT_EQ(json.at("devices"), "auto");
    EXPECT_EQ(json.at("flash_attn"), 1);
}

TEST(BenchReportTest, APromptWithItsAnswerHasARateAndNoShare) {
    Measurement both = generation();
    both.test = {.prompt = 20, .generated = 10, .depth = 64};
    EXPECT_EQ(name_of(both.test), "pp20+tg10 @ d64");
    const auto json = nlohmann::json::parse(render("json", {both}, gpu_setup()))[0];
    EXPECT_EQ(json.at("avg_ts"), 45.0);
    EXPECT_EQ(json.at("n_evaluated"), 30);
    for (const char* name : {"weights_gb_s", "ram_read_share", "weights_gflop_s", "int_dot_peak_share",
                             "dense_bytes_gpu", "limit_share"})
        EXPECT_TRUE(json.at(name).is_null()) << name;
}

TEST(BenchReportTest, TablesShowTheFieldsAskedFor) {
    auto facts = setup();
    facts.cache_keys = "q8_0";
    const std::string text = render("md", {generation()}, facts, {"n_threads", "type_k"});
    EXPECT_NE(text.find("| threads | type_k |"), std::string::npos) << text;
    EXPECT_NE(text.find("|       2 |   q8_0 |"), std::string::npos) << text;
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

TEST(BenchReportTest, AGpuIsMeasuredAgainstItsPaths) {
    const Shares share = shares(gpu_setup(), gpu_generation());
    EXPECT_DOUBLE_EQ(share.bytes_per_second, 15'000.0);
    EXPECT_EQ(share.of_read_rate, 0.0);  // RAM is not where most weights are
    // 20 tokens in 1.5 s. Link: 1,600 bytes; RAM: those, the CPU's and the embedding rows; its own memory:
    // slots and dense weights.
    const double link = 1600 / 2000.0;
    const double ram = (1600 + 3000 + 20 * 10) / 10'000.0;
    const double own = (4000 + 20 * 590) / 100'000.0;
    EXPECT_DOUBLE_EQ(share.of_limit, std::max({link, ram, own}) / 1.5);
    Measurement unknown = gpu_generation();
    unknown.rates = {};
    EXPECT_EQ(shares(gpu_setup(), unknown).of_limit, 0.0);
}

TEST(BenchReportTest, SaysWhichBytesAGpuMovedInEveryFormat) {
    Measurement reading = prompt();
    reading.cache = {.hits = 10, .misses = 30, .streamed_bytes = 2000};
    const auto json = nlohmann::json::parse(render("json", {gpu_generation(), reading}, gpu_setup()));
    const auto& generated = json[0];
    EXPECT_EQ(generated.at("gpu_info"), "a card");
    EXPECT_EQ(generated.at("n_gpus"), 1);
    EXPECT_EQ(generated.at("expert_hit_rate"), 0.5);
    EXPECT_EQ(generated.at("expert_bytes_cpu"), 150.0);
    EXPECT_EQ(generated.at("expert_bytes_slots"), 200.0);
    EXPECT_EQ(generated.at("expert_bytes_uploaded"), 30.0);
    EXPECT_EQ(generated.at("expert_bytes_linked"), 50.0);
    EXPECT_EQ(generated.at("dense_bytes_gpu"), 590.0);
    EXPECT_EQ(generated.at("vram_gb_s"), 1e-4);
    EXPECT_GT(generated.at("limit_share"), 0.5);
    EXPECT_EQ(json[1].at("expert_bytes_streamed"), 100.0);
    EXPECT_TRUE(json[1].at("expert_bytes_slots").is_null());  // read once for many tokens
    EXPECT_TRUE(json[1].at("dense_bytes_gpu").is_null());
    EXPECT_TRUE(json[1].at("int_dot_peak_share").is_null());
    EXPECT_TRUE(nlohmann::json::parse(render("json", {generation()}))[0].at("gpu_info").is_null());

    const std::string csv = render("csv", {gpu_generation()}, gpu_setup());
    EXPECT_NE(csv.find("expert_bytes_linked,dense_bytes_gpu,link_gb_s,vram_gb_s,limit_share"),
              std::string::npos)
        << csv;
    const std::string table = render("md", {gpu_generation(), reading}, gpu_setup());
    EXPECT_NE(table.find("|     hits |  VRAM MB/t |  link MB/t |  CPU MB/t |  of limit |"), std::string::npos)
        << table;
    EXPECT_NE(table.find("|   50.0 % |      0.001 |      0.000 |     0.000 |      53 % |"), std::string::npos)
        << table;
    EXPECT_NE(table.find("|   25.0 % |            |      0.000 |     0.000 |           |"), std::string::npos)
        << table;
}

TEST(BenchReportTest, FindsGpusPathsByTheirNames) {
    engine::MachineProfile machine;
    machine.ram_reads = {{1, 10e9}, {8, 60e9}};
    machine.gpus.resize(2);
    machine.gpus[0].name = "fast";
    machine.gpus[0].to_device = 50e9;
    machine.gpus[0].own_memory = 3e12;
    machine.gpus[1].name = "slow";
    machine.gpus[1].to_device = 20e9;
    machine.gpus[1].own_memory = 1e12;
    const std::array<std::string, 2> both{"fast", "slow"};
    EXPECT_EQ(path_rates(machine, std::span(both).first(1)).links, 50e9);
    EXPECT_DOUBLE_EQ(path_rates(machine, std::span(both).first(1)).devices, 3e12);
    const PathRates rates = path_rates(machine, both);
    EXPECT_EQ(rates.ram, 60e9);
    EXPECT_EQ(rates.links, 70e9);
    EXPECT_DOUBLE_EQ(rates.devices, 1.5e12);  // of 2 bytes one takes 1/3, the other 1
    const std::array<std::string, 1> other{"another"};
    EXPECT_EQ(path_rates(machine, other).ram, 0);
}

TEST(BenchReportTest, RefusesOtherFormats) { EXPECT_THROW(make_report("xml", {}, stdout), Error); }

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
