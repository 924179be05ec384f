#include "engine/prompt_window.h"

#include <algorithm>

#include "expert_cache/placement/slot_shares.h"

namespace coterie::engine {
namespace {

using expert_cache::ComputeCosts;
using expert_cache::Costs;
using expert_cache::DensePlace;
using expert_cache::WindowLayer;

/// Seconds of a multiply-add, as the costs of this kind's rows say.
double multiply_add_seconds(const PlacementFacts& facts, const std::vector<ComputeCosts>& compute,
                            std::size_t kind) {
    return compute[kind].row_seconds / static_cast<double>(facts.kinds[kind].multiply_adds);
}

/// One token's share of one layer without its routed experts, which all layers have alike.
double dense_seconds(const PlacementFacts& facts, const Costs& costs, DensePlace dense) {
    double each = multiply_add_seconds(facts, costs.cpu.compute, 0);
    if (dense == DensePlace::Devices && !costs.devices.empty()) {
        each = multiply_add_seconds(facts, costs.devices.front().compute, 0);
        for (const auto& device : costs.devices) {
            each = std::min(each, multiply_add_seconds(facts, device.compute, 0));
        }
    }
    return each * static_cast<double>(facts.dense_multiply_adds) /
           static_cast<double>(facts.model.layers.size());
}

/// A (token, expert) pair where all devices share the work by their speed.
double pair_seconds(const Costs& costs, std::size_t kind) {
    double per_second = 0;
    for (const auto& device : costs.devices) {
        const double seconds = device.compute[kind].row_seconds;
        if (seconds <= 0) return 0;
        per_second += 1 / seconds;
    }
    return per_second > 0 ? 1 / per_second : 0;
}

double stream_rate(const Costs& costs) {
    double links = 0;
    for (const auto& device : costs.devices) links += device.link_bytes_per_second;
    return std::min(links, costs.ram_bytes_per_second);
}

}  // namespace

expert_cache::WindowProblem window_problem(const PlacementFacts& facts, const Costs& costs,
                                           std::span<const std::int32_t> missing, DensePlace dense,
                                           const WindowBounds& bounds, std::vector<WindowLayer>& layers) {
    layers.clear();
    const double rest = dense_seconds(facts, costs, dense);
    for (std::size_t i = 0; i < facts.model.layers.size(); ++i) {
        const expert_cache::LayerFacts& layer = facts.model.layers[i];
        const double experts = layer.experts_used * pair_seconds(costs, static_cast<std::size_t>(layer.kind));
        layers.push_back({.experts = std::max(layer.experts, 1),
                          .experts_used = layer.experts_used,
                          .missing = layer.experts > 0 ? missing[i] : 0,
                          .expert_bytes = layer.expert_bytes,
                          .token_seconds = rest + experts});
    }
    return {.layers = layers,
            .stream_bytes_per_second = stream_rate(costs),
            .prompt_tokens = bounds.prompt_tokens,
            .context_tokens = bounds.most_tokens,
            .bytes_per_token = bounds.bytes_per_token,
            .workspace_bytes = bounds.lent_bytes};
}

std::optional<std::uint64_t> lendable_bytes(std::span<const std::uint64_t> slot_bytes, std::uint64_t ring,
                                            std::uint64_t least) {
    std::optional<std::uint64_t> poorest;
    for (const std::uint64_t bytes : slot_bytes) {
        if (bytes / 2 < ring || bytes / 2 - ring < least) continue;
        poorest = std::min(poorest.value_or(bytes), bytes / 2 - ring);
    }
    return poorest;
}

std::vector<std::int32_t> missing_experts(const PlacementFacts& facts,
                                          const expert_cache::Placement& placement,
                                          std::int32_t spare_slots) {
    expert_cache::SlotCounts slots;
    for (const expert_cache::DevicePlan& device : placement.devices) slots.push_back(device.slots);
    std::vector<std::int32_t> missing;
    for (std::size_t i = 0; i < facts.model.layers.size(); ++i) {
        const std::int32_t experts = facts.model.layers[i].experts;
        missing.push_back(experts - expert_cache::residents_of_layer(slots, i, experts, spare_slots));
    }
    return missing;
}

}  // namespace coterie::engine
