#include "cli/bench/markdown.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace coterie::cli::bench {
namespace {

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

/// Of what a test has; else nothing.
std::string percent(double share) { return share > 0 ? fmt::format("{:.0f} %", 100.0 * share) : ""; }

/// A field's name over its column, as llama-bench shortens it.
std::string title_of(const std::string& field) {
    static const std::map<std::string, std::string> kShort{{"n_gpu_layers", "ngl"}, {"split_mode", "sm"}};
    const auto found = kShort.find(field);
    return found == kShort.end() ? field : found->second;
}

struct Column {
    std::string title;
    int width;
    bool right;
};

std::string device_word(const Setup& setup) {
    if (!setup.gpu.empty()) return "CUDA";
    return setup.gpus > 0 ? "CPU+GPU" : "CPU";
}

class Markdown final : public Report {
  public:
    Markdown(std::vector<std::string> fields, std::FILE* out) : fields_(std::move(fields)), out_(out) {
        std::erase(fields_, "n_threads");  // always shown
    }

    void add(const Setup& setup, const Measurement& measurement) override {
        if (columns_.empty()) begin(setup);
        std::vector<std::string> cells{setup.model_type, human_bytes(setup.model_bytes),
                                       human_parameters(setup.model_parameters), device_word(setup),
                                       std::to_string(setup.threads)};
        for (const std::string& field : fields_) cells.push_back(field_text(field, setup, measurement));
        add_rates(setup, measurement, cells);
        if (shows_devices_) add_devices(setup, measurement, cells);
        print_row(cells);
        last_ = setup;
        rates_ = measurement.rates;
    }

    void end() override {
        if (columns_.empty()) return;
        fmt::print(out_,
                   "\nbuild: coterie {}, {} on {}; RAM reads {:.1f} GB/s, int8 dot peak {:.0f} GFLOP/s\n",
                   COTERIE_VERSION, last_.instruction_set, last_.processor, last_.read_rate / 1e9,
                   last_.integer_peak / 1e9);
        if (rates_.devices > 0) {
            fmt::print(out_, "paths: RAM {:.1f}, links {:.1f}, memory of GPUs {:.1f} GB/s\n",
                       rates_.ram / 1e9, rates_.links / 1e9, rates_.devices / 1e9);
        }
    }

  private:
    /// The columns of devices stand there where the first row has some.
    void begin(const Setup& setup) {
        shows_devices_ = setup.gpus > 0;
        columns_ = {{"model", 30, false},
                    {"size", 10, true},
                    {"params", 10, true},
                    {"backend", 10, false},
                    {"threads", 7, true}};
        for (const std::string& field : fields_) {
            const std::string title = title_of(field);
            columns_.push_back({title, std::max(6, static_cast<int>(title.size())), true});
        }
        for (const Column& column :
             {Column{"test", 15, true}, Column{"t/s", 20, true}, Column{"GB/s", 8, true},
              Column{"of RAM rate", 11, true}, Column{"GFLOP/s", 8, true}, Column{"of int8 peak", 12, true}})
            columns_.push_back(column);
        if (shows_devices_) {
            for (const Column& column :
                 {Column{"hits", 8, true}, Column{"VRAM MB/t", 10, true}, Column{"link MB/t", 10, true},
                  Column{"CPU MB/t", 9, true}, Column{"of limit", 9, true}})
                columns_.push_back(column);
        }
        print_head();
    }

    void print_head() {
        std::vector<std::string> names;
        for (const Column& column : columns_) names.push_back(column.title);
        print_row(names);
        fmt::print(out_, "|");
        for (const Column& column : columns_) {
            fmt::print(out_, " {:->{}}{} |", "", column.width - (column.right ? 1 : 0),
                       column.right ? ":" : "");
        }
        fmt::print(out_, "\n");
        std::fflush(out_);
    }

    static void add_rates(const Setup& setup, const Measurement& measurement,
                          std::vector<std::string>& cells) {
        const Statistics rate = statistics(rates(measurement));
        const Shares share = shares(setup, measurement);
        cells.push_back(name_of(measurement.test));
        cells.push_back(fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation));
        cells.push_back(
            measurement.test.only_generation() ? fmt::format("{:.2f}", share.bytes_per_second / 1e9) : "");
        cells.push_back(percent(share.of_read_rate));
        cells.push_back(
            measurement.test.only_prompt() ? fmt::format("{:.1f}", share.operations_per_second / 1e9) : "");
        cells.push_back(percent(share.of_integer_peak));
    }

    static void add_devices(const Setup& setup, const Measurement& measurement,
                            std::vector<std::string>& cells) {
        if (setup.gpus == 0) return cells.resize(cells.size() + 5);
        const CacheUse& cache = measurement.cache;
        const auto megabytes = [&](double bytes) {
            return fmt::format("{:.3f}", 1e-6 * bytes / tokens_of(measurement));
        };
        const double device = static_cast<double>(cache.slot_bytes) + dense_device_bytes(setup, measurement);
        cells.push_back(cache.hits + cache.misses > 0 ? fmt::format("{:.1f} %", 100.0 * cache.hit_rate())
                                                      : "");
        cells.push_back(knows_device_reads(setup, measurement) ? megabytes(device) : "");
        cells.push_back(megabytes(static_cast<double>(cache.link_bytes())));
        cells.push_back(megabytes(static_cast<double>(cache.cpu_bytes)));
        cells.push_back(percent(shares(setup, measurement).of_limit));
    }

    void print_row(const std::vector<std::string>& cells) {
        fmt::print(out_, "|");
        const Column* column = columns_.data();
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

    std::vector<std::string> fields_;  ///< shown beside the usual ones
    std::FILE* out_;
    std::vector<Column> columns_;  ///< empty before the first row
    bool shows_devices_ = false;
    Setup last_;
    PathRates rates_ = {};  ///< of the last test
};

}  // namespace

std::unique_ptr<Report> make_markdown(const std::vector<std::string>& columns, std::FILE* out) {
    return std::make_unique<Markdown>(columns, out);
}

}  // namespace coterie::cli::bench
