#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/bench/measurement.h"
#include "cli/bench/report.h"
#include "cli/bench/sweep.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "cli/probe/machine_cache.h"
#include "devices/device.h"
#include "engine/forward/device_forward.h"
#include "engine/offload.h"
#include "engine/probe/probe.h"
#include "kernels/cpu/integer_peak.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::cli {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24;

struct BenchOptions {
    ModelOptions model;
    std::vector<std::int64_t> prompts{512};
    std::vector<std::int64_t> generations{128};
    std::vector<std::string> prompts_and_generations;  ///< -pg: "P,N" each
    std::vector<std::int64_t> depths{0};
    bench::Sweep sweep;
    bench::MeasureOptions measure;
    std::string format = "md";
};

/// "512,128": a prompt's and an answer's tokens.
bench::Test parse_prompt_and_generation(const std::string& text) {
    bench::Test test;
    const char* const end = text.data() + text.size();
    const auto prompt = std::from_chars(text.data(), end, test.prompt);
    const char* const second = prompt.ptr == end ? end : prompt.ptr + 1;
    const auto generated = std::from_chars(second, end, test.generated);
    const bool whole = prompt.ec == std::errc() && prompt.ptr != end && *prompt.ptr == ',' &&
                       generated.ec == std::errc() && generated.ptr == end;
    const auto fits = [](std::int64_t tokens) { return tokens > 0 && tokens <= kMostTokens; };
    if (whole && fits(test.prompt) && fits(test.generated)) return test;
    fail(ErrorCode::InvalidArgument, "-pg {}: give a prompt's and an answer's tokens, such as 512,128", text);
}

std::vector<bench::Test> tests(const BenchOptions& options) {
    std::vector<bench::Test> pairs;
    for (const std::string& pair : options.prompts_and_generations)
        pairs.push_back(parse_prompt_and_generation(pair));
    std::vector<bench::Test> result;
    for (const std::int64_t depth : options.depths) {
        for (const std::int64_t prompt : options.prompts) {
            if (prompt > 0) result.push_back({.prompt = prompt, .generated = 0, .depth = depth});
        }
        for (const std::int64_t generated : options.generations) {
            if (generated > 0) result.push_back({.prompt = 0, .generated = generated, .depth = depth});
        }
        for (bench::Test pair : pairs) {
            pair.depth = depth;
            result.push_back(pair);
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
        setup.gpus = forward->devices();
        setup.gpu_layers = engine.config().layers;
        setup.cache_policy = options.offload.policy;
    }
    const PlacementFlags& placement = options.offload.placement;
    setup.cpu_moe_layers =
        placement.cpu_moe ? engine.config().layers : std::min(placement.n_cpu_moe, engine.config().layers);
    setup.split_mode = options.gpu.split_mode;
    setup.main_gpu = std::max(0, options.gpu.main);
    setup.devices = options.gpu.devices;
    setup.tensor_split = options.gpu.shares;
    setup.load_mode = options.load_mode;
    setup.cache_keys = options.cache_keys;
    setup.cache_values = options.cache_values;
    setup.cost = models::token_cost(engine.model());
    ThreadPool threads(setup.threads);
    setup.read_rate = cpu::measure_read_rate(threads);
    setup.integer_peak = cpu::measure_integer_dot_peak(threads);
    return setup;
}

/// What GPUs' paths carry. Measured before the model takes their memory; nothing where no GPU is used.
std::optional<engine::MachineProfile> measured_paths(const ModelOptions& options) {
    const bool none = options.gpu.layers == "0" || options.gpu.devices == "none" ||
                      !options.offload.placement.fake_gpu.empty();
    const DeviceList list = none ? DeviceList() : list_devices();
    if (list.devices.empty()) return std::nullopt;
    return measured_machine_profile(options.threads, list.devices, {}, Measure::IfNew);
}

/// The file that was opened last: settings of the same file follow each other.
struct OpenedModel {
    std::string model;
    std::string load_mode;
    std::shared_ptr<const gguf::Archive> archive;

    const std::shared_ptr<const gguf::Archive>& open(const ModelOptions& options) {
        if (archive && model == options.model && load_mode == options.load_mode) return archive;
        archive.reset();  // two models need not fit
        archive = open_archive(options);
        model = options.model;
        load_mode = options.load_mode;
        return archive;
    }
};

/// All tests on one model, loaded as the flags are set now.
void run_setting(const BenchOptions& options, const std::vector<bench::Test>& planned, OpenedModel& opened,
                 bench::Report& report) {
    ModelOptions model = options.model;
    for (const bench::Test& test : planned)
        model.context = std::max(model.context, test.depth + test.tokens());
    const std::optional<engine::MachineProfile> machine = measured_paths(model);
    bench::MeasureOptions how = options.measure;
    how.machine = machine ? &*machine : nullptr;
    const std::unique_ptr<engine::Engine> engine = load_engine(opened.open(model), model);
    const bench::Setup setup = describe(*engine, model);
    for (const bench::Test& test : planned) report.add(setup, measure(*engine, test, how));
}

void run(const BenchOptions& options) {
    const std::vector<bench::Test> planned = tests(options);
    if (planned.empty())
        fail(ErrorCode::InvalidArgument, "nothing to measure: -p, -n or -pg must be above 0");
    const auto report = bench::make_report(options.format, options.sweep.given(), stdout);
    OpenedModel opened;
    options.sweep.for_each([&] { run_setting(options, planned, opened, *report); });
    report->end();
}

/// What llama-bench takes several values of, in its order.
void widen(CLI::App& command, BenchOptions& options) {
    ModelOptions& model = options.model;
    bench::Sweep& sweep = options.sweep;
    sweep.widen_repeated(command, "--model", model.model);
    sweep.widen(command, "--n-gpu-layers", "n_gpu_layers", model.gpu.layers);
    sweep.widen(command, "--n-cpu-moe", "n_cpu_moe", model.offload.placement.n_cpu_moe);
    sweep.widen(command, "--split-mode", "split_mode", model.gpu.split_mode);
    sweep.widen(command, "--main-gpu", "main_gpu", model.gpu.main);
    sweep.widen(command, "--load-mode", "load_mode", model.load_mode);
    sweep.widen(command, "--batch-size", "n_batch", model.batch);
    sweep.widen(command, "--ubatch-size", "n_ubatch", model.ubatch);
    sweep.widen(command, "--cache-type-k", "type_k", model.cache_keys);
    sweep.widen(command, "--cache-type-v", "type_v", model.cache_values);
    sweep.widen(command, "--threads", "n_threads", model.threads);
}

}  // namespace

void add_bench(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("bench", "Measure the speed of prompts and generation");
    const auto options = std::make_shared<BenchOptions>();
    const char* const group = "Bench";
    const auto add_lengths = [&](const char* names, std::vector<std::int64_t>& values, const char* help) {
        command->add_option(names, values, help)
            ->delimiter(',')
            ->check(whole_number(0, kMostTokens))
            ->capture_default_str()
            ->group(group);
    };
    add_lengths("-p,--n-prompt", options->prompts, "tokens of a prompt, several with commas; 0: none");
    add_lengths("-n,--n-gen", options->generations, "tokens to generate, several with commas; 0: none");
    command
        ->add_option("--pg", options->prompts_and_generations,
                     "-pg P,N: a prompt and then an answer, timed together; may be repeated")
        ->allow_extra_args(false)
        ->group(group);
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
    widen(*command, *options);
    command->footer(
        "GB/s counts the weights that a generated token uses; RAM's rate and the peak of 8-bit dot products\n"
        "are measured first, on the same threads.\n"
        "Examples:\n"
        "  coterie bench -m model.gguf\n"
        "  coterie bench -m model.gguf -p 512,2048 -n 64 -d 0,4096 -r 3 -o jsonl\n"
        "  coterie bench -m model.gguf -pg 512,128 -t 4,8 -ctk f16,q8_0");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
