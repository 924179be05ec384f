#include "engine/probe/probe.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "cli/probe/machine_cache.h"
#include "cli/probe/report.h"
#include "engine/probe/machine_profile_file.h"
#include "models/registry.h"

namespace coterie::cli {
namespace {

struct ProbeOptions {
    ModelOptions model;
    bool json = false;
    bool refresh = false;
};

std::vector<engine::ExpertShape> shapes_of(const ModelOptions& options) {
    if (options.model.empty()) return {engine::usual_expert()};
    return engine::expert_shapes(*models::build_model(*open_archive(options)));
}

void run(const ProbeOptions& options) {
    const engine::MachineProfile profile =
        measured_machine_profile(options.model.threads, named_gpus(options.model.gpu.devices, list_devices()),
                                 shapes_of(options.model), options.refresh ? Measure::Again : Measure::IfNew);
    fmt::print("{}", options.json ? engine::profile_to_json(profile) + "\n" : render_text(profile));
}

}  // namespace

void add_probe(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("probe", "Measure this machine: RAM, CPU, links to GPUs");
    const auto options = std::make_shared<ProbeOptions>();
    const char* const group = "Probe";
    command->add_flag("--json", options->json, "print JSON")->group(group);
    command->add_flag("--refresh", options->refresh, "measure again what an earlier probe has measured")
        ->group(group);
    command
        ->add_option("-m,--model", options->model.model,
                     "times its kinds of experts; default: one of 768 x 2048 in Q4_K")
        ->envname(environment::kModel)
        ->group(group);
    command->add_option("-t,--threads", options->model.threads, "threads; default: one per physical core")
        ->envname(environment::kThreads)
        ->check(whole_number(1, 1024))
        ->group(group);
    command
        ->add_option("--device", options->model.gpu.devices, "-dev: numbers of GPUs, or none; default: all")
        ->group(group);
    command->footer(
        "Takes a few seconds the first time; the result is kept, and coterie plan uses it.\n"
        "Examples:\n"
        "  coterie probe\n"
        "  coterie probe -m model.gguf --json --refresh");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
