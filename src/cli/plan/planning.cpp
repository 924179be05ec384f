#include "cli/plan/planning.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cli/model_options.h"
#include "cli/plan/usage.h"
#include "engine/offload.h"
#include "engine/prompt_window.h"
#include "models/registry.h"

namespace coterie::cli::plan {
namespace {

using expert_cache::Placement;
using expert_cache::PlacementResult;
using expert_cache::Refusal;
using expert_cache::Strategy;

constexpr std::int64_t kGridTokens = 64;
constexpr std::int64_t kMostWindow = 1 << 20;

/// Tries placements for windows of different lengths; everything else is fixed.
class Planning {
  public:
    Planning(const gguf::Archive& archive, const ModelOptions& options, RunPlan& plan)
        : options_(options), plan_(plan), staging_bytes_(plan.request.staging_bytes) {
        describe(options.step_tokens());
        usage_ = usage_counts(archive, plan_.facts.model, options.offload.placement.profile);
        if (has_experts()) window_bytes_ = engine::Offload::window_bytes(*plan_.model);
    }

    bool has_experts() const {
        return std::any_of(plan_.facts.model.layers.begin(), plan_.facts.model.layers.end(),
                           [](const auto& layer) { return layer.experts > 0; });
    }

    PlacementResult place(std::int64_t window) {
        describe(window);
        const auto tokens = static_cast<std::uint64_t>(window);
        if (!plan_.devices.empty()) {
            const std::uint64_t shared = window_bytes_.ram / plan_.devices.size();
            plan_.request.staging_bytes = staging_bytes_ + tokens * (window_bytes_.pinned + shared);
        }
        plan_.window.tokens = window;
        return expert_cache::plan_placement(plan_.facts.model, plan_.devices, plan_.costs, plan_.request,
                                            usage_ ? &*usage_ : nullptr);
    }

    /// What streaming would want beyond -b; nothing where the placement has nothing to stream or to lend.
    std::optional<expert_cache::WindowPlan> wanted_window(const Placement& placement) const {
        if (placement.strategy != Strategy::Cache && placement.strategy != Strategy::Static) return {};
        std::vector<std::uint64_t> slot_bytes;
        for (const auto& device : placement.devices) slot_bytes.push_back(device.slot_bytes);
        const auto least = window_bytes_.device * static_cast<std::uint64_t>(options_.step_tokens());
        const auto lent = engine::lendable_bytes(slot_bytes, window_bytes_.ring, least);
        if (!lent) return {};
        const auto missing = engine::missing_experts(plan_.facts, placement, plan_.request.spare_slots);
        std::vector<expert_cache::WindowLayer> layers;
        return expert_cache::plan_window(
            engine::window_problem(plan_.facts, plan_.costs, missing, plan_.request.dense,
                                   {.prompt_tokens = std::max<std::int64_t>(plan_.request.context, 1),
                                    .most_tokens = std::max<std::int64_t>(plan_.request.context, 1),
                                    .bytes_per_token = window_bytes_.device,
                                    .lent_bytes = *lent},
                                   layers));
    }

  private:
    void describe(std::int64_t window) {
        const engine::EngineOptions defaults;
        plan_.facts = engine::placement_facts(
            *plan_.model,
            {.cache = cache_format(options_), .batch = window, .snapshots = defaults.snapshots});
        if (plan_.facts.kinds.empty()) {  // costs need one
            plan_.facts.kinds.push_back({.name = "none", .multiply_adds = 1});
        }
    }

    const ModelOptions& options_;
    RunPlan& plan_;
    const std::uint64_t staging_bytes_;
    engine::Offload::WindowBytes window_bytes_{};
    std::optional<expert_cache::UsageCounts> usage_;
};

Placement accepted(PlacementResult result) {
    if (const auto* refusal = std::get_if<Refusal>(&result)) {
        fail(ErrorCode::OutOfMemory, "{}: {} bytes are missing; {}", refusal->problem, refusal->missing_bytes,
             refusal->way_out);
    }
    return std::get<Placement>(std::move(result));
}

/// The window that streaming wants, or the largest part of it that leaves the placement as it is.
void widen_window(Planning& planning, RunPlan& plan, std::int64_t batch) {
    const auto wanted = planning.wanted_window(plan.placement);
    if (!wanted) return;
    for (std::int64_t tokens = wanted->tokens; tokens > batch;
         tokens = tokens / 2 / kGridTokens * kGridTokens) {
        PlacementResult result = planning.place(tokens);
        auto* placement = std::get_if<Placement>(&result);
        if (placement == nullptr || placement->strategy != plan.placement.strategy) continue;
        plan.placement = std::move(*placement);
        plan.window.plan = wanted;
        return;
    }
    plan.placement = accepted(planning.place(batch));
}

}  // namespace

std::optional<std::int64_t> fixed_window(const std::string& value) {
    if (value == "auto") return std::nullopt;
    std::int64_t tokens = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), tokens);
    if (error != std::errc() || end != value.data() + value.size() || tokens < 1 || tokens > kMostWindow) {
        fail(ErrorCode::InvalidArgument, "--window {}: give auto or a number of tokens up to {}", value,
             kMostWindow);
    }
    return tokens;
}

RunPlan plan_run(const gguf::Archive& archive, const ModelOptions& options, const CostSetting& costs,
                 expert_cache::DensePlace dense) {
    const PlacementFlags& flags = options.offload.placement;
    const std::optional<std::int64_t> fixed = fixed_window(flags.window);
    RunPlan plan;
    plan.model = models::build_model(archive);
    const std::vector<PlannedDevice> devices = planned_devices(flags.fake_gpu);
    for (const PlannedDevice& device : devices) plan.devices.push_back(device.facts);
    plan.request = placement_request(flags, plan.devices, plan.model->config.layers);
    plan.request.context = engine::context_or_default(options.context, plan.model->config);
    plan.request.dense = dense;
    Planning planning(archive, options, plan);
    if (!flags.fake_gpu.empty() && planning.has_experts()) {
        plan.request.reserve_bytes += engine::Offload::overhead_bytes(*plan.model, options.step_tokens());
    }
    plan.costs = planned_costs(devices, plan.facts.kinds, costs);
    const std::int64_t batch = std::min(options.step_tokens(), plan.request.context);
    const bool streams = !plan.devices.empty() && planning.has_experts();
    const std::int64_t window = streams && fixed ? std::clamp(*fixed, batch, plan.request.context) : batch;
    plan.placement = accepted(planning.place(window));
    if (streams && !fixed) widen_window(planning, plan, batch);
    return plan;
}

}  // namespace coterie::cli::plan
