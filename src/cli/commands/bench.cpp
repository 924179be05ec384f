#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/bench/measurement.h"
#include "cli/bench/report.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "engine/forward/device_forward.h"
#include "engine/offload.h"
#include "engine/probe/probe.h"
#include "kernels/cpu/integer_peak.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::cli {
namespace {

struct BenchOptions {
    ModelOptions model;
    std::vector<std::int64_t> prompts{512};
    std::vector<std::int64_t> generations{128};
    std::vector<std::int64_t> depths{0};
    bench::MeasureOptions measure;
    std::string format = "md";
};

std::vector<bench::Test> tests(const BenchOptions& options) {
    std::vector<bench::Test> result;
    for (const std::int64_t depth : options.depths) {
        for (const std::int64_t prompt : options.prompts) {
            if (prompt > 0) result.push_back({.prompt = prompt, .generated = 0, .depth = depth});
        }
        for (const std::int64_t generated : options.generations) {
            if (generated > 0) result.push_back({.prompt = 0, .generated = generated, .depth = depth});
        }
    }
    return result;
}

/// Architecture, the file's own word for its size, and the type of most of its bytes.
std::string model_type(const gguf::Archive& archive) {
    std::map<DataType, std::size_t> bytes;
    for (const gguf::Tensor& tensor : archive.tensors()) bytes[tensor.type] += tensor.bytes.size();
    const auto most = std::max_element(bytes.begin(), bytes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string size(archive.metadata().string("general.size_label", ""));
    return fmt::format("{}{}{} {}", archive.metadata().string("general.architecture"),
                       size.empty() ? "" : " ", size, traits(most->first).name);
}

bench::Setup describe(engine::Engine& engine, const ModelOptions& options) {
    bench::Setup setup;
    setup.model_file = engine.archive().name();
    setup.model_type = model_type(engine.archive());
    for (const gguf::Tensor& tensor : engine.archive().tensors()) {
        setup.model_bytes += static_cast<std::int64_t>(tensor.bytes.size());
        setup.model_parameters += tensor.values();
    }
    setup.processor = engine::processor_name();
    setup.instruction_set = cpu::kernels().name;
    setup.threads = engine.threads();
    setup.batch = engine.batch();
    setup.window = engine.window();
    if (const engine::Offload* offload = engine.offload()) {
        setup.gpus = static_cast<int>(offload->options().fake_devices.size());
        setup.cache_policy = offload->options().policy;
    }
    if (engine::DeviceForward* forward = engine.device()) {
        for (int i = 0; i < forward->devices(); ++i)
            setup.gpu += (i > 0 ? ", " : "") + forward->device_name(i);
    }
    setup.cache_keys = options.cache_keys;
    setup.cache_values = options.cache_values;
    setup.cost = models::token_cost(engine.model());
    ThreadPool threads(setup.threads);
    setup.read_rate = cpu::measure_read_rate(threads);
    setup.integer_peak = cpu::measure_integer_dot_peak(threads);
    return setup;
}

void run(const BenchOptions& options) {
    const std::vector<bench::Test> planned = tests(options);
    if (planned.empty()) fail(ErrorCode::InvalidArgument, "nothing to measure: -p or -n must be above 0");
    ModelOptions model = options.model;
    for (const bench::Test& test : planned)
        model.context = std::max(model.context, test.depth + test.tokens());
    const std::unique_ptr<engine::Engine> engine = load_engine(open_archive(model), model);
    const bench::Setup setup = describe(*engine, model);
    const std::unique_ptr<bench::Report> report = bench::make_report(options.format, setup, stdout);
    report->begin();
    for (const bench::Test& test : planned) report->add(measure(*engine, test, options.measure));
    report->end();
}

}  // namespace

void add_bench(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("bench", "Measure the speed of prompts and generation");
    const auto options = std::make_shared<BenchOptions>();
    const char* const group = "Bench";
    const auto add_lengths = [&](const char* names, std::vector<std::int64_t>& values, const char* help) {
        command->add_option(names, values, help)
            ->delimiter(',')
            ->check(whole_number(0, 1 << 24))
            ->capture_default_str()
            ->group(group);
    };
    add_lengths("-p,--n-prompt", options->prompts, "tokens of a prompt, several with commas; 0: none");
    add_lengths("-n,--n-gen", options->generations, "tokens to generate, several with commas; 0: none");
    add_lengths("-d,--n-depth", options->depths, "tokens of context before a test, several with commas");
    command->add_option("-r,--repetitions", options->measure.repetitions, "how often each test is timed")
        ->check(whole_number(1, 1000))
        ->capture_default_str()
        ->group(group);
    command->add_option("-o,--output", options->format, "md, csv, json or jsonl")
        ->check(CLI::IsMember({"md", "csv", "json", "jsonl"}))
        ->capture_default_str()
        ->group(group);
    command->add_flag("!--no-warmup", options->measure.warm_up, "no untimed repetition before the first")
        ->group(group);
    add_model_flags(*command, options->model);
    add_offload_flags(*command, options->model.offload);
    options->model.offload.profile = OffloadFlags::Profile::Reads;
    command->footer(
        "GB/s counts the weights that a generated token uses; RAM's rate and the peak of 8-bit dot products\n"
        "are measured first, on the same threads.\n"
        "Examples:\n"
        "  coterie bench -m model.gguf\n"
        "  coterie bench -m model.gguf -p 512,2048 -n 64 -d 0,4096 -r 3 -o jsonl");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
