#include "cli/bench/report.h"

#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "cli/bench/markdown.h"

namespace coterie::cli::bench {
namespace {

std::vector<std::int64_t> nanoseconds(const Measurement& measurement) {
    std::vector<std::int64_t> result;
    for (const double seconds : measurement.seconds)
        result.push_back(static_cast<std::int64_t>(seconds * 1e9));
    return result;
}

const char* backends(const Setup& setup) {
    if (!setup.gpu.empty()) return "CUDA";
    return setup.gpus > 0 ? "CPU, GPU experts" : "CPU";
}

/// The version as one number that grows with it: 1.23.4 is 10,230,004.
std::int64_t build_number() {
    std::int64_t number = 0;
    std::istringstream parts(COTERIE_VERSION);
    std::string part;
    for (const std::int64_t weight : {10'000'000, 10'000, 1}) {
        if (std::getline(parts, part, '.')) number += weight * std::strtol(part.c_str(), nullptr, 10);
    }
    return number;
}

/// What a test does not have is null, not 0.
nlohmann::ordered_json applicable(double value) {
    return value > 0.0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

/// With llama-bench's names. Null is what there is no choice of.
nlohmann::ordered_json setup_fields(const Setup& setup) {
    return {{"build_version", COTERIE_VERSION},
            {"build_commit", COTERIE_VERSION},
            {"build_number", build_number()},
            {"cpu_info", setup.processor},
            {"gpu_info", setup.gpu.empty() ? nullptr : nlohmann::ordered_json(setup.gpu)},
            {"backends", backends(setup)},
            {"model_filename", setup.model_file},
            {"model_type", setup.model_type},
            {"model_size", setup.model_bytes},
            {"model_n_params", setup.model_parameters},
            {"n_batch", setup.batch},
            {"n_ubatch", setup.window},
            {"n_threads", setup.threads},
            {"cpu_mask", nullptr},
            {"cpu_strict", true},  // each thread stays on its core
            {"poll", nullptr},
            {"type_k", setup.cache_keys},
            {"type_v", setup.cache_values},
            {"n_gpu_layers", setup.gpu_layers},
            {"n_cpu_moe", setup.cpu_moe_layers},
            {"split_mode", setup.split_mode},
            {"main_gpu", setup.main_gpu},
            {"no_kv_offload", false},
            {"flash_attn", 1},
            {"devices", setup.devices.empty() ? "auto" : setup.devices},
            {"tensor_split", setup.tensor_split.empty() ? "0.00" : setup.tensor_split},
            {"tensor_buft_overrides", "none"},
            {"load_mode", setup.load_mode},
            {"embeddings", false},
            {"no_op_offload", 0},
            {"no_host", false},
            {"fit_target", nullptr},
            {"fit_min_ctx", nullptr}};
}

/// One measurement with llama-bench's field names, and behind them those of our own.
nlohmann::ordered_json fields(const Setup& setup, const Measurement& measurement) {
    const Statistics time = statistics(measurement.seconds);
    const std::vector<double> samples = rates(measurement);
    const Statistics rate = statistics(samples);
    const Shares share = shares(setup, measurement);
    const CacheUse& cache = measurement.cache;
    const auto per_token_if = [&](bool known, double bytes) -> nlohmann::ordered_json {
        if (!known) return nullptr;
        return bytes / tokens_of(measurement);
    };
    const auto per_token = [&](std::uint64_t bytes) {
        return per_token_if(setup.gpus > 0, static_cast<double>(bytes));
    };
    const bool device_reads = knows_device_reads(setup, measurement);
    nlohmann::ordered_json json = setup_fields(setup);
    json.update({{"n_prompt", measurement.test.prompt},
                 {"n_gen", measurement.test.generated},
                 {"n_depth", measurement.test.depth},
                 {"test_time", measurement.start_time},
                 {"avg_ns", static_cast<std::int64_t>(time.mean * 1e9)},
                 {"stddev_ns", static_cast<std::int64_t>(time.deviation * 1e9)},
                 {"avg_ts", rate.mean},
                 {"stddev_ts", rate.deviation},
                 {"samples_ns", nanoseconds(measurement)},
                 {"samples_ts", samples},
                 {"median_ts", rate.median},
                 {"n_evaluated", measurement.test.tokens()},
                 {"cpu_isa", setup.instruction_set},
                 {"weights_gb_s", applicable(share.bytes_per_second / 1e9)},
                 {"ram_read_gb_s", setup.read_rate / 1e9},
                 {"ram_read_share", applicable(share.of_read_rate)},
                 {"weights_gflop_s", applicable(share.operations_per_second / 1e9)},
                 {"int_dot_peak_gflop_s", setup.integer_peak / 1e9},
                 {"int_dot_peak_share", applicable(share.of_integer_peak)},
                 {"n_gpus", setup.gpus},
                 {"cache_policy", setup.gpus > 0 ? nlohmann::ordered_json(setup.cache_policy) : nullptr},
                 {"expert_hit_rate", setup.gpus > 0 ? nlohmann::ordered_json(cache.hit_rate()) : nullptr},
                 {"expert_bytes_cpu", per_token(cache.cpu_bytes)},
                 {"expert_bytes_slots", per_token_if(device_reads, static_cast<double>(cache.slot_bytes))},
                 {"expert_bytes_fetched", per_token(cache.fetched_bytes)},
                 {"expert_bytes_uploaded", per_token(cache.uploaded_bytes)},
                 {"expert_bytes_streamed", per_token(cache.streamed_bytes)},
                 {"expert_bytes_linked", per_token(cache.linked_bytes)},
                 {"dense_bytes_gpu", per_token_if(device_reads, dense_device_bytes(setup, measurement))},
                 {"link_gb_s", applicable(measurement.rates.links / 1e9)},
                 {"vram_gb_s", applicable(measurement.rates.devices / 1e9)},
                 {"limit_share", applicable(share.of_limit)},
                 {"logits_checksum", fmt::format("{:016x}", measurement.logits_checksum)}});
    return json;
}

std::string plain(const nlohmann::ordered_json& value) {
    if (value.is_null()) return "";
    return value.is_string() ? value.get<std::string>() : value.dump();
}

class Json final : public Report {
  public:
    explicit Json(std::FILE* out) : out_(out) {}
    void add(const Setup& setup, const Measurement& measurement) override {
        std::string text = fields(setup, measurement).dump(2);
        fmt::print(out_, "{}\n{}", first_ ? "[" : ",", text);
        first_ = false;
        std::fflush(out_);
    }
    void end() override { fmt::print(out_, "{}\n]\n", first_ ? "[" : ""); }

  private:
    std::FILE* out_;
    bool first_ = true;
};

class JsonLines final : public Report {
  public:
    explicit JsonLines(std::FILE* out) : out_(out) {}
    void add(const Setup& setup, const Measurement& measurement) override {
        fmt::print(out_, "{}\n", fields(setup, measurement).dump());
        std::fflush(out_);
    }

  private:
    std::FILE* out_;
};

/// All values quoted, as llama-bench does; the samples are left out.
class Csv final : public Report {
  public:
    explicit Csv(std::FILE* out) : out_(out) {}
    void add(const Setup& setup, const Measurement& measurement) override {
        auto row = fields(setup, measurement);
        row.erase("samples_ns");
        row.erase("samples_ts");
        if (first_) print_row(row, [](const auto& item) { return item.key(); });
        first_ = false;
        print_row(row, [](const auto& item) { return quoted(plain(item.value())); });
        std::fflush(out_);
    }

  private:
    static std::string quoted(const std::string& text) {
        std::string result = "\"";
        for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
        return result + "\"";
    }
    template <typename Cell>
    void print_row(const nlohmann::ordered_json& row, Cell cell) {
        const char* separator = "";
        for (const auto& item : row.items()) {
            fmt::print(out_, "{}{}", separator, cell(item));
            separator = ",";
        }
        fmt::print(out_, "\n");
    }

    std::FILE* out_;
    bool first_ = true;
};

}  // namespace

double tokens_of(const Measurement& measurement) {
    return static_cast<double>(measurement.test.tokens()) * static_cast<double>(measurement.seconds.size());
}

double dense_device_bytes(const Setup& setup, const Measurement& measurement) {
    if (setup.gpu.empty() || !measurement.test.only_generation()) return 0;
    return static_cast<double>(setup.cost.dense_bytes + setup.cost.output_bytes) * tokens_of(measurement);
}

bool knows_device_reads(const Setup& setup, const Measurement& measurement) {
    return setup.gpus > 0 && (setup.gpu.empty() || measurement.test.only_generation());
}

Shares shares(const Setup& setup, const Measurement& measurement) {
    const double mean = statistics(rates(measurement)).mean;
    Shares result;
    if (measurement.test.only_generation()) {
        result.bytes_per_second = mean * static_cast<double>(setup.cost.decode_bytes());
        if (setup.gpu.empty()) result.of_read_rate = result.bytes_per_second / setup.read_rate;
        if (setup.gpus > 0) {
            const double all = static_cast<double>(setup.cost.decode_bytes() - setup.cost.expert_bytes) *
                               tokens_of(measurement);
            const double device = dense_device_bytes(setup, measurement);
            const double seconds =
                std::accumulate(measurement.seconds.begin(), measurement.seconds.end(), 0.0);
            result.of_limit =
                limit_seconds(measurement.cache, measurement.rates, {.cpu = all - device, .device = device}) /
                seconds;
        }
    } else if (measurement.test.only_prompt()) {
        const auto tokens = measurement.test.prompt;
        result.operations_per_second =
            mean * setup.cost.prompt_operations(tokens) / static_cast<double>(tokens);
        if (setup.gpu.empty()) result.of_integer_peak = result.operations_per_second / setup.integer_peak;
    }
    return result;
}

std::string field_text(const std::string& name, const Setup& setup, const Measurement& measurement) {
    return plain(fields(setup, measurement).at(name));
}

std::unique_ptr<Report> make_report(const std::string& format, const std::vector<std::string>& columns,
                                    std::FILE* out) {
    if (format == "md") return make_markdown(columns, out);
    if (format == "csv") return std::make_unique<Csv>(out);
    if (format == "json") return std::make_unique<Json>(out);
    if (format == "jsonl") return std::make_unique<JsonLines>(out);
    fail(ErrorCode::InvalidArgument, "--output {}: supported are md, csv, json and jsonl", format);
}

}  // namespace coterie::cli::bench
