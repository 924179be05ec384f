#include "cli/bench/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.h"

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

/// Of all repetitions.
double tokens_of(const Measurement& measurement) {
    return static_cast<double>(measurement.test.tokens()) * static_cast<double>(measurement.seconds.size());
}

/// What a test does not have is null, not 0.
nlohmann::ordered_json applicable(double value) {
    return value > 0.0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

/// What a GPU that runs whole steps reads of weights other than experts, of all repetitions; in generation.
double dense_device_bytes(const Setup& setup, const Measurement& measurement) {
    if (setup.gpu.empty() || measurement.test.generated == 0) return 0;
    return static_cast<double>(setup.cost.dense_bytes + setup.cost.output_bytes) * tokens_of(measurement);
}

/// Whether the bytes that devices read of their own memory are known: a GPU's in generation alone.
bool knows_device_reads(const Setup& setup, const Measurement& measurement) {
    return setup.gpus > 0 && (setup.gpu.empty() || measurement.test.generated > 0);
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
    return {{"build_version", COTERIE_VERSION},
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
            {"type_k", setup.cache_keys},
            {"type_v", setup.cache_values},
            {"n_prompt", measurement.test.prompt},
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
            {"logits_checksum", fmt::format("{:016x}", measurement.logits_checksum)}};
}

class Json final : public Report {
  public:
    Json(const Setup& setup, std::FILE* out) : setup_(setup), out_(out) {}
    void begin() override { fmt::print(out_, "["); }
    void add(const Measurement& measurement) override {
        std::string text = fields(setup_, measurement).dump(2);
        fmt::print(out_, "{}\n{}", first_ ? "" : ",", text);
        first_ = false;
    }
    void end() override { fmt::print(out_, "\n]\n"); }

  private:
    const Setup& setup_;
    std::FILE* out_;
    bool first_ = true;
};

class JsonLines final : public Report {
  public:
    JsonLines(const Setup& setup, std::FILE* out) : setup_(setup), out_(out) {}
    void add(const Measurement& measurement) override {
        fmt::print(out_, "{}\n", fields(setup_, measurement).dump());
        std::fflush(out_);
    }

  private:
    const Setup& setup_;
    std::FILE* out_;
};

/// All values quoted, as llama-bench does; the samples are left out.
class Csv final : public Report {
  public:
    Csv(const Setup& setup, std::FILE* out) : setup_(setup), out_(out) {}
    void add(const Measurement& measurement) override {
        auto row = fields(setup_, measurement);
        row.erase("samples_ns");
        row.erase("samples_ts");
        if (first_) print_row(row, [](const auto& item) { return item.key(); });
        first_ = false;
        print_row(row, [](const auto& item) { return quoted(plain(item.value())); });
        std::fflush(out_);
    }

  private:
    static std::string plain(const nlohmann::ordered_json& value) {
        if (value.is_null()) return "";
        return value.is_string() ? value.get<std::string>() : value.dump();
    }
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

    const Setup& setup_;
    std::FILE* out_;
    bool first_ = true;
};

std::string human_bytes(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    return bytes >= std::int64_t{1} << 30 ? fmt::format("{:.2f} GiB", value / (1 << 30))
                                          : fmt::format("{:.2f} MiB", value / (1 << 20));
}

std::string human_parameters(std::int64_t parameters) {
    const auto value = static_cast<double>(parameters);
    return parameters >= 1'000'000'000 ? fmt::format("{:.2f} B", value / 1e9)
                                       : fmt::format("{:.2f} M", value / 1e6);
}

class Markdown final : public Report {
  public:
    Markdown(const Setup& setup, std::FILE* out) : setup_(setup), out_(out) {}
    void begin() override {
        std::vector<std::string> names{"model", "size", "params",      "backend", "threads",     "test",
                                       "t/s",   "GB/s", "of RAM rate", "GFLOP/s", "of int8 peak"};
        if (setup_.gpus > 0)
            names.insert(names.end(), {"hits", "VRAM MB/t", "link MB/t", "CPU MB/t", "of limit"});
        print_row(names);
        fmt::print(out_, "|");
        for (const Column& column : std::span(kColumns).first(names.size())) {
            fmt::print(out_, " {:->{}}{} |", "", column.width - (column.right ? 1 : 0),
                       column.right ? ":" : "");
        }
        fmt::print(out_, "\n");
        std::fflush(out_);
    }
    void add(const Measurement& measurement) override {
        const Statistics rate = statistics(rates(measurement));
        const Shares share = shares(setup_, measurement);
        const bool generation = measurement.test.generated > 0;
        std::vector<std::string> cells{
            setup_.model_type,
            human_bytes(setup_.model_bytes),
            human_parameters(setup_.model_parameters),
            !setup_.gpu.empty() ? "CUDA"
            : setup_.gpus > 0   ? "CPU+GPU"
                                : "CPU",
            std::to_string(setup_.threads),
            name_of(measurement.test),
            fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation),
            generation ? fmt::format("{:.2f}", share.bytes_per_second / 1e9) : "",
            percent(share.of_read_rate),
            generation ? "" : fmt::format("{:.1f}", share.operations_per_second / 1e9),
            percent(share.of_integer_peak)};
        if (setup_.gpus > 0) {
            const CacheUse& cache = measurement.cache;
            const auto megabytes = [&](double bytes) {
                return fmt::format("{:.3f}", 1e-6 * bytes / tokens_of(measurement));
            };
            const double device =
                static_cast<double>(cache.slot_bytes) + dense_device_bytes(setup_, measurement);
            cells.push_back(cache.hits + cache.misses > 0 ? fmt::format("{:.1f} %", 100.0 * cache.hit_rate())
                                                          : "");
            cells.push_back(knows_device_reads(setup_, measurement) ? megabytes(device) : "");
            cells.push_back(megabytes(static_cast<double>(cache.link_bytes())));
            cells.push_back(megabytes(static_cast<double>(cache.cpu_bytes)));
            cells.push_back(percent(share.of_limit));
        }
        print_row(cells);
        rates_ = measurement.rates;
    }
    void end() override {
        fmt::print(out_,
                   "\nbuild: coterie {}, {} on {}; RAM reads {:.1f} GB/s, int8 dot peak {:.0f} GFLOP/s\n",
                   COTERIE_VERSION, setup_.instruction_set, setup_.processor, setup_.read_rate / 1e9,
                   setup_.integer_peak / 1e9);
        if (rates_.devices > 0) {
            fmt::print(out_, "paths: RAM {:.1f}, links {:.1f}, memory of GPUs {:.1f} GB/s\n",
                       rates_.ram / 1e9, rates_.links / 1e9, rates_.devices / 1e9);
        }
    }

  private:
    /// Of what a test has; else nothing.
    static std::string percent(double share) {
        return share > 0 ? fmt::format("{:.0f} %", 100.0 * share) : "";
    }
    struct Column {
        int width;
        bool right;
    };
    static constexpr Column kColumns[] = {
        {30, false}, {10, true}, {10, true}, {10, false}, {7, true},  {15, true}, {20, true}, {8, true},
        {11, true},  {8, true},  {12, true}, {8, true},   {10, true}, {10, true}, {9, true},  {9, true}};

    void print_row(const std::vector<std::string>& cells) {
        fmt::print(out_, "|");
        const Column* column = kColumns;
        for (const std::string& cell : cells) {
            if (column->right) {
                fmt::print(out_, " {:>{}} |", cell, column->width);
            } else {
                fmt::print(out_, " {:<{}} |", cell, column->width);
            }
            ++column;
        }
        fmt::print(out_, "\n");
        std::fflush(out_);
    }

    const Setup& setup_;
    std::FILE* out_;
    PathRates rates_ = {};  ///< of the last test
};

}  // namespace

Shares shares(const Setup& setup, const Measurement& measurement) {
    const double mean = statistics(rates(measurement)).mean;
    Shares result;
    if (measurement.test.generated > 0) {
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
    } else {
        const auto tokens = measurement.test.prompt;
        result.operations_per_second =
            mean * setup.cost.prompt_operations(tokens) / static_cast<double>(tokens);
        if (setup.gpu.empty()) result.of_integer_peak = result.operations_per_second / setup.integer_peak;
    }
    return result;
}

std::unique_ptr<Report> make_report(const std::string& format, const Setup& setup, std::FILE* out) {
    if (format == "md") return std::make_unique<Markdown>(setup, out);
    if (format == "csv") return std::make_unique<Csv>(setup, out);
    if (format == "json") return std::make_unique<Json>(setup, out);
    if (format == "jsonl") return std::make_unique<JsonLines>(setup, out);
    fail(ErrorCode::InvalidArgument, "--output {}: supported are md, csv, json and jsonl", format);
}

}  // namespace coterie::cli::bench
