#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/placement_flags.h"
#include "cli/plan/machine.h"
#include "cli/plan/report.h"
#include "cli/plan/usage.h"
#include "engine/offload.h"
#include "engine/placement_facts.h"
#include "models/registry.h"

namespace coterie::cli {
namespace {

using namespace expert_cache;

/// Rates as people write them.
struct RateFlags {
    std::string file;
    double ram = 0;       ///< GB/s; 0: measured
    double vram = 400;    ///< GB/s
    double handoff = 15;  ///< microseconds
};

struct Options {
    ModelOptions model;
    PlacementFlags placement;
    RateFlags rates;
    bool dense_on_gpu = false;
    bool json = false;
};

std::vector<DeviceFacts> facts_of(const std::vector<plan::PlannedDevice>& devices) {
    std::vector<DeviceFacts> facts;
    for (const plan::PlannedDevice& device : devices) facts.push_back(device.facts);
    return facts;
}

PlacementRequest request_of(const Options& options, const std::vector<DeviceFacts>& devices,
                            const models::Model& model) {
    PlacementRequest request = placement_request(options.placement, devices, model.config.layers);
    request.context = engine::context_or_default(options.model.context, model.config);
    if (!options.placement.fake_gpu.empty()) {
        request.reserve_bytes += engine::Offload::overhead_bytes(model, options.model.batch);
    }
    if (options.dense_on_gpu) request.dense = DensePlace::Devices;
    return request;
}

engine::PlacementFacts facts_of(const models::Model& model, const Options& options) {
    const engine::EngineOptions defaults;
    engine::PlacementFacts facts = engine::placement_facts(model, {.cache = cache_format(options.model),
                                                                   .batch = options.model.batch,
                                                                   .snapshots = defaults.snapshots});
    if (facts.kinds.empty()) facts.kinds.push_back({.name = "none", .multiply_adds = 1});  // costs need one
    return facts;
}

Costs costs_of(const Options& options, const std::vector<plan::PlannedDevice>& devices,
               const engine::PlacementFacts& facts) {
    return plan::planned_costs(devices, facts.kinds,
                               {.file = options.rates.file,
                                .ram_bytes_per_second = 1e9 * options.rates.ram,
                                .vram_bytes_per_second = 1e9 * options.rates.vram,
                                .handoff_seconds = 1e-6 * options.rates.handoff,
                                .threads = options.model.threads});
}

const Placement& placed(const PlacementResult& result) {
    if (const auto* refusal = std::get_if<Refusal>(&result)) {
        fail(ErrorCode::OutOfMemory, "{}: {} bytes are missing; {}", refusal->problem, refusal->missing_bytes,
             refusal->way_out);
    }
    return std::get<Placement>(result);
}

void run(const Options& options) {
    const auto archive = open_archive(options.model);
    const auto model = models::build_model(*archive);
    const auto planned = plan::planned_devices(options.placement.fake_gpu);
    const std::vector<DeviceFacts> devices = facts_of(planned);
    const PlacementRequest request = request_of(options, devices, *model);
    const engine::PlacementFacts facts = facts_of(*model, options);
    const auto usage = plan::usage_counts(*archive, facts.model, options.placement.profile);
    const Costs costs = costs_of(options, planned, facts);
    const PlacementResult result =
        plan_placement(facts.model, devices, costs, request, usage ? &*usage : nullptr);
    const plan::PlanReport report{archive->name(), facts.model, devices, request, costs, placed(result)};
    fmt::print("{}", options.json ? render_json(report) : render_text(report));
}

}  // namespace

void add_plan(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("plan", "Show what would go where, without loading weights");
    const auto options = std::make_shared<Options>();
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
    add_placement_flags(*command, options->placement);
    add_model_flags(*command, options->model);
    command->footer(
        "Examples:\n"
        "  coterie plan -m model.gguf --fake-gpu 12G@24G/s --ram-rate 42 --vram-rate 936\n"
        "  coterie plan -m model.gguf --fake-gpu 2x64M@1G/s --expert-cache 16 --json");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
