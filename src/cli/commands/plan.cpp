#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/placement_flags.h"
#include "cli/plan/planning.h"
#include "cli/plan/report.h"

namespace coterie::cli {
namespace {

using expert_cache::DensePlace;

/// Rates as people write them.
struct RateFlags {
    std::string file;
    double ram = 0;       ///< GB/s; 0: measured
    double vram = 400;    ///< GB/s
    double handoff = 15;  ///< microseconds
};

struct PlanOptions {
    ModelOptions model;
    RateFlags rates;
    bool dense_on_gpu = false;
    bool json = false;
};

plan::CostSetting cost_setting(const PlanOptions& options) {
    return {.file = options.rates.file,
            .ram_bytes_per_second = 1e9 * options.rates.ram,
            .vram_bytes_per_second = 1e9 * options.rates.vram,
            .handoff_seconds = 1e-6 * options.rates.handoff,
            .threads = options.model.threads};
}

void run(const PlanOptions& options) {
    const auto archive = open_archive(options.model);
    const DensePlace dense = options.dense_on_gpu ? DensePlace::Devices : DensePlace::Cpu;
    const plan::RunPlan planned = plan::plan_run(*archive, options.model, cost_setting(options), dense);
    const plan::PlanReport report{archive->name(), planned.facts.model, planned.devices, planned.request,
                                  planned.costs,   planned.placement,   planned.window};
    fmt::print("{}", options.json ? render_json(report) : render_text(report));
}

}  // namespace

void add_plan(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("plan", "Show what would go where, without loading weights");
    const auto options = std::make_shared<PlanOptions>();
    const char* const group = "Plan";
    command->add_flag("--json", options->json, "print JSON")->group(group);
    command
        ->add_flag("--dense-on-gpu", options->dense_on_gpu,
                   "plan for GPUs that run the rest of the layers too")
        ->group(group);
    command
        ->add_option("--ram-rate", options->rates.ram, "GB/s that the CPU reads from RAM; default: measured")
        ->check(CLI::Range(0.001, 1e6))
        ->group(group);
    command->add_option("--vram-rate", options->rates.vram, "GB/s of a GPU's own memory")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str()
        ->group(group);
    command->add_option("--handoff", options->rates.handoff, "microseconds of a hand-off between CPU and GPU")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str()
        ->group(group);
    command->add_option("--costs", options->rates.file, "all costs from a JSON file, as --json prints them")
        ->group(group);
    add_placement_flags(*command, options->model.offload.placement);
    add_model_flags(*command, options->model);
    command->footer(
        "Examples:\n"
        "  coterie plan -m model.gguf --fake-gpu 12G@24G/s --ram-rate 42 --vram-rate 936\n"
        "  coterie plan -m model.gguf --fake-gpu 2x64M@1G/s --expert-cache 16 --json");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
