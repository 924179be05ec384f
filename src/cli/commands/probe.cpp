#include "engine/probe/probe.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
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

/// All GPUs, the one that --device names, or none.
std::vector<DeviceInfo> chosen_gpus(const std::string& flag) {
    if (flag == "none") return {};
    const DeviceList list = list_devices();
    if (flag.empty()) return list.devices;
    int index = 0;
    const auto [end, error] = std::from_chars(flag.data(), flag.data() + flag.size(), index);
    for (const DeviceInfo& device : list.devices) {
        if (error == std::errc() && end == flag.data() + flag.size() && device.index == index)
            return {device};
    }
    fail(ErrorCode::InvalidArgument,
         "--device {}: give a number that --list-devices of coterie run prints, or "
         "none{}{}",
         flag, list.note.empty() ? "" : "; ", list.note);
}

std::vector<engine::ExpertShape> shapes_of(const ModelOptions& options) {
    if (options.model.empty()) return {engine::usual_expert()};
    return engine::expert_shapes(*models::build_model(*open_archive(options)));
}

void keep(const engine::MachineProfile& profile) {
    const std::string path = machine_profile_path(profile.machine);
    if (path.empty()) return;
    try {
        engine::save_machine_profile(profile, path);
    } catch (const Error& error) {
        log::warn("the machine's profile is not kept: {}", error.what());
    }
}

/// What is kept, or else measured and kept; experts that it lacks are measured in addition.
engine::MachineProfile profile_for(const ProbeOptions& options) {
    const std::vector<DeviceInfo> gpus = chosen_gpus(options.model.device);
    const std::vector<engine::ExpertShape> shapes = shapes_of(options.model);
    const engine::MachineIdentity machine = machine_of(options.model.threads, gpus);
    auto profile = options.refresh ? std::nullopt : cached_machine_profile(machine);
    if (!profile) {
        profile = engine::measure_machine(machine, gpus, shapes);
    } else if (const auto missing = engine::missing_experts(shapes, *profile); !missing.empty()) {
        engine::add_experts(missing, *profile);
    } else {
        return std::move(*profile);
    }
    keep(*profile);
    return std::move(*profile);
}

void run(const ProbeOptions& options) {
    const engine::MachineProfile profile = profile_for(options);
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
    command->add_option("--device", options->model.device, "-dev: number of a GPU, or none; default: all")
        ->group(group);
    command->footer(
        "Takes a few seconds the first time; the result is kept, and coterie plan uses it.\n"
        "Examples:\n"
        "  coterie probe\n"
        "  coterie probe -m model.gguf --json --refresh");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
