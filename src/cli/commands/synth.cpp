#include "synth/synth.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/command.h"
#include "cli/flag_values.h"

namespace coterie::cli {
namespace {

struct SynthOptions {
    synth::Options synth;
    std::string output;
    bool overwrite = false;
    bool plan = false;
    int threads = 0;
};

void write(const SynthOptions& options) {
    if (options.output.empty()) {
        fail(ErrorCode::InvalidArgument, "-o FILE says where to write; --plan only shows what it would be");
    }
    {
        ProgressBar bar("writing", ProgressBar::Unit::Bytes);
        synth::write(options.synth, options.output,
                     options.overwrite ? gguf::Overwrite::Yes : gguf::Overwrite::No, options.threads,
                     [&](std::uint64_t done, std::uint64_t total) { bar.update(done, total); });
    }
    fmt::print("{}: {} bytes\n", options.output, std::filesystem::file_size(options.output));
}

void run(const SynthOptions& options) {
    if (!options.plan) return write(options);
    fmt::print("{}", synth::render(synth::plan(options.synth)));
}

}  // namespace

void add_synth(CLI::App& root, Action& action) {
    CLI::App* command =
        root.add_subcommand("synth", "Write a model of random weights with a real one's shapes");
    const auto options = std::make_shared<SynthOptions>();
    synth::Options& o = options->synth;
    const char* const group = "Synth";
    const auto add = [&](const char* names, auto& value, const std::string& help) {
        command->add_option(names, value, help)->capture_default_str()->group(group);
    };
    add("shape", o.shape, "one of " + synth::shape_names());
    add("--layers", o.layers, "layers to write; 0: all the model has");
    add("--quant", o.quant, "one of " + synth::quant_names());
    add("--skew", o.skew, "exponent of the experts' popularity, 0 to 4; 0: all alike");
    add("--topics", o.topics, "groups of tokens that share experts, 1 to 64");
    add("--topic-strength", o.topic_strength, "a topic's part in the choice of experts, 0 to 8");
    add("-s,--seed", o.seed, "other seeds give other weights");
    command->add_option("-o,--output", options->output, "file to write")->group(group);
    command->add_flag("--force", options->overwrite, "replace an existing file")->group(group);
    command->add_flag("--plan", options->plan, "show sizes and predicted cache hit rates; write nothing")
        ->group(group);
    command->add_option("-t,--threads", options->threads, "threads; default: one per physical core")
        ->check(whole_number(1, 1024))
        ->group(group);
    command->footer(
        "Examples:\n"
        "  coterie synth qwen3-30b-a3b --layers 4 -o four-layers.gguf\n"
        "  coterie synth glm-4.5-air --quant q4_k_m --skew 1.2 --topics 16 --plan");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
