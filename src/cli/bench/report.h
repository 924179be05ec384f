#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/measurement.h"
#include "models/token_cost.h"

namespace coterie::cli::bench {

/// What all measurements of one model, loaded in one way, have in common.
struct Setup {
    std::string model_file;
    std::string model_type;  ///< "glm4moe 29M Q5_K"
    std::int64_t model_bytes = 0;
    std::int64_t model_parameters = 0;
    std::string processor;
    std::string instruction_set;
    int threads = 0;
    std::int64_t batch = 0;
    std::int64_t window = 0;          ///< tokens of a prompt's step at most
    int gpus = 0;                     ///< that hold weights
    std::string gpu;                  ///< that runs whole steps; empty: the CPU does
    std::int64_t gpu_layers = 0;      ///< that GPUs run
    std::int64_t cpu_moe_layers = 0;  ///< whose experts stay on the CPU
    std::string split_mode;
    int main_gpu = 0;
    std::string devices;       ///< as asked for; empty: all
    std::string tensor_split;  ///< as asked for; empty: by memory
    std::string load_mode;     ///< as asked for
    std::string cache_policy;
    std::string cache_keys;
    std::string cache_values;
    models::TokenCost cost;
    double read_rate = 0.0;     ///< bytes per second: what memory gives
    double integer_peak = 0.0;  ///< operations per second: what the cores give in 8-bit dot products
};

/// How near a test came to the limit of what it uses; 0 where it has none.
struct Shares {
    double bytes_per_second = 0.0;  ///< of weights, in generation
    double of_read_rate = 0.0;
    double operations_per_second = 0.0;  ///< of products with weights, in prompts
    double of_integer_peak = 0.0;
    double of_limit = 0.0;  ///< in generation with devices: of the time that bytes alone take on their paths
};

/// Tokens of all repetitions.
double tokens_of(const Measurement& measurement);
/// What a GPU that runs whole steps reads of weights other than experts, of all repetitions; in generation.
double dense_device_bytes(const Setup& setup, const Measurement& measurement);
/// Whether the bytes that devices read of their own memory are known: a GPU's in generation alone.
bool knows_device_reads(const Setup& setup, const Measurement& measurement);

/// From the mean rate.
Shares shares(const Setup& setup, const Measurement& measurement);

/// Writes measurements as they come, in llama-bench's formats and column names, with what bench adds behind
/// them.
class Report {
  public:
    virtual ~Report() = default;
    virtual void add(const Setup& setup, const Measurement& measurement) = 0;
    virtual void end() {}
};

/// `format`: md, csv, json or jsonl; InvalidArgument for anything else. `columns`: fields by their names in
/// json that a table for people shows beside what it always does. Nothing is written before the first
/// measurement or the end.
std::unique_ptr<Report> make_report(const std::string& format, const std::vector<std::string>& columns,
                                    std::FILE* out);

/// The text of the field that json calls so; empty where a measurement has no such value.
std::string field_text(const std::string& name, const Setup& setup, const Measurement& measurement);

}  // namespace coterie::cli::bench
