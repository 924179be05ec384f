#include "expert_cache/placement/placement.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "expert_cache/placement/expected_hits.h"
#include "expert_cache/placement/memory_plan.h"
#include "expert_cache/placement/strategy.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kContextStep = 64;  ///< tokens of a page

struct Inputs {
    const ModelFacts& model;
    const std::vector<DeviceFacts>& devices;
    const Costs& costs;
    const UsageCounts* usage;
};

std::uint64_t all_expert_bytes(const ModelFacts& model) {
    std::uint64_t bytes = 0;
    for (const LayerFacts& layer : model.layers) {
        bytes += layer.expert_bytes * static_cast<std::uint64_t>(layer.experts);
    }
    return bytes;
}

void fill_slots(const ModelFacts& model, const Candidate& candidate, std::vector<DevicePlan>& devices) {
    for (std::size_t d = 0; d < devices.size(); ++d) {
        devices[d].slots = candidate.slots[d];
        for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
            devices[d].slot_bytes +=
                model.layers[layer].expert_bytes * static_cast<std::uint64_t>(candidate.slots[d][layer]);
        }
        devices[d].unused_bytes -= devices[d].slot_bytes;
    }
}

/// Bytes of experts that devices hold at any time: of a cache's slots all but the spare ones.
std::uint64_t resident_bytes(const ModelFacts& model, const Candidate& candidate, std::int32_t spare_slots) {
    const std::int32_t spare = candidate.strategy == Strategy::Cache ? spare_slots : 0;
    std::uint64_t bytes = 0;
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const std::int32_t residents =
            residents_of_layer(candidate.slots, layer, model.layers[layer].experts, spare);
        bytes += model.layers[layer].expert_bytes * static_cast<std::uint64_t>(residents);
    }
    return bytes;
}

bool is_exclusive(RamContent wanted, std::uint64_t all, std::uint64_t resident, std::uint64_t room) {
    if (wanted == RamContent::Auto) return all > room && all - resident <= room;
    return wanted == RamContent::Exclusive && resident > 0;
}

/// What is too much for RAM is read from the file when it is used.
void fill_ram(const Inputs& inputs, RamContent wanted_content, std::uint64_t resident, std::uint64_t room,
              Placement& placement) {
    const std::uint64_t all = all_expert_bytes(inputs.model);
    placement.exclusive = is_exclusive(wanted_content, all, resident, room);
    const std::uint64_t wanted = placement.exclusive ? all - resident : all;
    placement.ram.expert_bytes = std::min(wanted, room);
    placement.ram.disk_bytes = wanted - placement.ram.expert_bytes;
}

double overall_hit_rate(const ModelFacts& model, const std::vector<double>& layer_hit_rates) {
    double hits = 0;
    double uses = 0;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        hits += layer_hit_rates[i] * model.layers[i].experts_used;
        uses += model.layers[i].experts_used;
    }
    return uses == 0 ? 0 : hits / uses;
}

/// Bytes by which --expert-cache SLOTS is more than the devices hold; none where it fits.
std::uint64_t missing_slot_bytes(const Inputs& inputs, const PlacementRequest& request,
                                 const Candidate& candidate) {
    if (!request.slots_per_layer) return 0;
    std::uint64_t missing = 0;
    for (std::size_t i = static_cast<std::size_t>(request.cpu_moe_layers); i < inputs.model.layers.size();
         ++i) {
        const LayerFacts& layer = inputs.model.layers[i];
        const std::int32_t wanted = std::min(*request.slots_per_layer, layer.experts);
        const std::int32_t lacking = std::max(0, wanted - slots_of_layer(candidate.slots, i));
        missing += layer.expert_bytes * static_cast<std::uint64_t>(lacking);
    }
    return missing;
}

PlacementResult place(const Inputs& inputs, const PlacementRequest& request) {
    MemoryResult memory = plan_memory(inputs.model, inputs.devices, request);
    if (auto* refusal = std::get_if<Refusal>(&memory)) return std::move(*refusal);
    const MemoryPlan& plan = std::get<MemoryPlan>(memory);
    const HitCurves curves(inputs.model, inputs.usage);
    Choice choice =
        choose_strategy({inputs.model, inputs.costs, request, plan, curves, inputs.usage != nullptr});
    const std::uint64_t missing = missing_slot_bytes(inputs, request, choice.candidate);
    if (missing > 0 && choice.candidate.strategy == Strategy::Cache) {
        return Refusal{
            .problem = fmt::format("{} slots in every layer are more than the devices have room for",
                                   *request.slots_per_layer),
            .missing_bytes = missing,
            .way_out = "",
            .nearest = {}};
    }
    Placement placement;
    placement.strategy = choice.candidate.strategy;
    placement.reason = std::move(choice.reason);
    placement.devices = plan.devices;
    placement.ram = plan.ram;
    placement.profiled = inputs.usage != nullptr;
    placement.seconds_per_token = choice.candidate.seconds_per_token;
    placement.hit_rate = overall_hit_rate(inputs.model, choice.candidate.hit_rates);
    fill_slots(inputs.model, choice.candidate, placement.devices);
    placement.layer_hit_rates = std::move(choice.candidate.hit_rates);
    fill_ram(inputs, request.ram_content, resident_bytes(inputs.model, choice.candidate, request.spare_slots),
             plan.ram_for_experts_bytes, placement);
    return placement;
}

bool works(const Inputs& inputs, const PlacementRequest& request) {
    return std::holds_alternative<Placement>(place(inputs, request));
}

/// The largest `value` in [lowest, highest], in whole steps from `lowest`, whose request works; nothing if
/// none does. Requires: what works for a value works for smaller ones.
template <typename Change>
std::optional<std::int64_t> largest_that_works(const Inputs& inputs, const PlacementRequest& request,
                                               std::int64_t lowest, std::int64_t highest, std::int64_t step,
                                               Change change) {
    const auto works_with = [&](std::int64_t steps) {
        PlacementRequest changed = request;
        change(changed, lowest + steps * step);
        return works(inputs, changed);
    };
    if (highest < lowest || !works_with(0)) return std::nullopt;
    std::int64_t low = 0;
    std::int64_t high = (highest - lowest) / step;
    while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        works_with(middle) ? low = middle : high = middle - 1;
    }
    return lowest + low * step;
}

bool try_less_vram(const Inputs& inputs, PlacementRequest& request, std::string& way_out) {
    for (std::size_t i = 0; i < std::min(request.vram_bytes.size(), inputs.devices.size()); ++i) {
        request.vram_bytes[i] = std::min(request.vram_bytes[i], inputs.devices[i].free_bytes);
    }
    way_out = "use --vram of what is free";
    return works(inputs, request);
}

bool try_fewer_slots(const Inputs& inputs, PlacementRequest& request, std::string& way_out) {
    if (!request.slots_per_layer) return false;
    const auto set = [](PlacementRequest& changed, std::int64_t slots) {
        changed.slots_per_layer = static_cast<std::int32_t>(slots);
    };
    const auto slots = largest_that_works(inputs, request, 1, *request.slots_per_layer - 1, 1, set);
    if (!slots) return false;
    set(request, *slots);
    way_out = fmt::format("use --expert-cache {}", *slots);
    return true;
}

bool try_smaller_context(const Inputs& inputs, PlacementRequest& request, std::string& way_out) {
    const auto set = [](PlacementRequest& changed, std::int64_t tokens) { changed.context = tokens; };
    const auto tokens =
        largest_that_works(inputs, request, kContextStep, request.context - 1, kContextStep, set);
    if (!tokens) return false;
    set(request, *tokens);
    way_out = fmt::format("use a context of at most {} tokens (-c {})", *tokens, *tokens);
    return true;
}

/// As much more as is missing, in whole MiB.
bool try_more_ram(const Inputs& inputs, PlacementRequest& request, std::string& way_out) {
    constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
    while (true) {
        PlacementResult result = place(inputs, request);
        const auto* refusal = std::get_if<Refusal>(&result);
        if (refusal == nullptr) break;
        const std::uint64_t wanted = (request.ram_bytes + refusal->missing_bytes + kMiB - 1) / kMiB * kMiB;
        if (wanted <= request.ram_bytes || wanted > request.machine_ram_bytes) return false;
        request.ram_bytes = wanted;
    }
    way_out = fmt::format("use --ram {}M", request.ram_bytes / kMiB);
    return true;
}

bool try_dense_on_cpu(const Inputs& inputs, PlacementRequest& request, std::string& way_out) {
    request.dense = DensePlace::Cpu;
    way_out = "leave dense weights and context on the CPU";
    return works(inputs, request);
}

void add_nearest(const Inputs& inputs, const PlacementRequest& request, Refusal& refusal) {
    for (const auto attempt :
         {try_less_vram, try_fewer_slots, try_smaller_context, try_more_ram, try_dense_on_cpu}) {
        PlacementRequest changed = request;
        if (!attempt(inputs, changed, refusal.way_out)) continue;
        refusal.nearest = std::move(changed);
        return;
    }
    refusal.way_out = "use a smaller model or a machine with more memory";
}

}  // namespace

PlacementResult plan_placement(const ModelFacts& model, const std::vector<DeviceFacts>& devices,
                               const Costs& costs, const PlacementRequest& request,
                               const UsageCounts* usage) {
    COTERIE_CHECK(costs.devices.size() == devices.size());
    const Inputs inputs{model, devices, costs, usage};
    PlacementResult result = place(inputs, request);
    if (auto* refusal = std::get_if<Refusal>(&result)) add_nearest(inputs, request, *refusal);
    return result;
}

}  // namespace coterie::expert_cache
