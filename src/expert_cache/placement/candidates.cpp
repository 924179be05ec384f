#include "expert_cache/placement/candidates.h"

#include <algorithm>
#include <numeric>

#include "expert_cache/placement/token_time.h"
#include "expert_cache/planner/step_problem.h"

namespace coterie::expert_cache {
namespace {

/// Measured elsewhere on warm caches: 4 to 6 uploads for about 90 misses of a token.
constexpr double kUploadsPerMiss = 1.0 / 16;

std::vector<std::int32_t> slots_on_devices(const SlotCounts& slots, std::size_t layer) {
    std::vector<std::int32_t> result;
    for (const std::vector<std::int32_t>& device : slots) result.push_back(device[layer]);
    return result;
}

/// Experts of a layer that stay: spare slots come and go with the misses.
std::int32_t residents(const StrategyProblem& problem, const Candidate& candidate, std::size_t layer) {
    if (candidate.strategy != Strategy::Cache) return slots_of_layer(candidate.slots, layer);
    return residents_of_layer(candidate.slots, layer, problem.model.layers[layer].experts,
                              problem.request.spare_slots);
}

double output_seconds(const StrategyProblem& problem) {
    const std::int32_t owner = problem.memory.owner.empty() ? kNoDevice : problem.memory.owner.back();
    LayerFacts output;
    output.dense_bytes = problem.model.output_bytes;
    return dense_layer_seconds(output, problem.costs, owner);
}

double layer_seconds(const StrategyProblem& problem, const Candidate& candidate, std::size_t layer) {
    const LayerFacts& facts = problem.model.layers[layer];
    const std::int32_t owner = problem.memory.owner[layer];
    const double dense = dense_layer_seconds(facts, problem.costs, owner);
    if (facts.experts == 0) return dense;
    const std::int32_t spare = candidate.strategy == Strategy::Cache ? problem.request.spare_slots : 0;
    return dense + expert_layer_seconds(facts, problem.costs,
                                        {.owner = owner,
                                         .hit_rate = candidate.hit_rates[layer],
                                         .slots = slots_on_devices(candidate.slots, layer),
                                         .spare_slots = spare});
}

/// RAM reads an uploaded expert once more than a missed one.
void add_uploads(const StrategyProblem& problem, Candidate& candidate) {
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        const LayerFacts& layer = problem.model.layers[i];
        if (!may_leave_cpu(problem, i)) continue;
        const double uploads = kUploadsPerMiss * layer.experts_used * (1 - candidate.hit_rates[i]);
        candidate.uploads_per_token += uploads;
        candidate.seconds_per_token +=
            uploads * static_cast<double>(layer.expert_bytes) / problem.costs.ram_bytes_per_second;
    }
}

void add_time(const StrategyProblem& problem, Candidate& candidate) {
    candidate.seconds_per_token = output_seconds(problem);
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        candidate.seconds_per_token += layer_seconds(problem, candidate, i);
    }
    if (candidate.strategy == Strategy::Cache) add_uploads(problem, candidate);
}

std::vector<std::uint64_t> slot_bytes(const StrategyProblem& problem) {
    std::vector<std::uint64_t> bytes;
    for (const DevicePlan& device : problem.memory.devices) bytes.push_back(device.unused_bytes);
    return bytes;
}

std::vector<double> all_saved_seconds(const StrategyProblem& problem) {
    std::vector<double> seconds;
    for (const LayerFacts& layer : problem.model.layers) {
        seconds.push_back(layer.experts == 0 ? 0 : saved_seconds(layer, problem.costs));
    }
    return seconds;
}

std::vector<std::int32_t> slot_limits(const StrategyProblem& problem) {
    std::vector<std::int32_t> limits;
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        const std::int32_t experts = problem.model.layers[i].experts;
        const std::int32_t wanted = problem.request.slots_per_layer.value_or(experts);
        limits.push_back(may_leave_cpu(problem, i) ? std::min(experts, wanted) : 0);
    }
    return limits;
}

SlotCounts shared_slots(const StrategyProblem& problem) {
    const std::vector<std::uint64_t> bytes = slot_bytes(problem);
    const std::vector<std::int32_t> limits = slot_limits(problem);
    const SlotShareProblem shares{problem.model, bytes, problem.memory.owner, limits};
    if (!problem.profiled) return share_equally(shares);
    return share_by_profile(shares, problem.curves, all_saved_seconds(problem));
}

bool all_resident(const StrategyProblem& problem, const SlotCounts& slots) {
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        const bool whole = slots_of_layer(slots, i) == problem.model.layers[i].experts;
        if (may_leave_cpu(problem, i) && !whole) return false;
    }
    return true;
}

/// The layer's own device where it has room, else the one with most room; kNoDevice where none has.
std::int32_t device_for_layer(const std::vector<std::uint64_t>& left, std::uint64_t bytes,
                              std::int32_t owner) {
    if (owner != kNoDevice && left[static_cast<std::size_t>(owner)] >= bytes) return owner;
    const auto most = std::max_element(left.begin(), left.end());
    return most != left.end() && *most >= bytes ? static_cast<std::int32_t>(most - left.begin()) : kNoDevice;
}

SlotCounts whole_layers(const StrategyProblem& problem) {
    std::vector<std::uint64_t> left = slot_bytes(problem);
    const std::vector<double> saved = all_saved_seconds(problem);
    std::vector<std::size_t> order(problem.model.layers.size());
    std::iota(order.rbegin(), order.rend(), 0);
    const auto worth = [&](std::size_t i) {
        const LayerFacts& layer = problem.model.layers[i];
        return layer.experts == 0
                   ? 0
                   : saved[i] * layer.experts_used / layer.experts / static_cast<double>(layer.expert_bytes);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return worth(a) > worth(b); });
    SlotCounts slots = no_slots(problem);
    for (const std::size_t i : order) {
        const LayerFacts& layer = problem.model.layers[i];
        if (!may_leave_cpu(problem, i)) continue;
        const std::uint64_t bytes = layer.expert_bytes * static_cast<std::uint64_t>(layer.experts);
        const std::int32_t device = device_for_layer(left, bytes, problem.memory.owner[i]);
        if (device == kNoDevice) continue;
        left[static_cast<std::size_t>(device)] -= bytes;
        slots[static_cast<std::size_t>(device)][i] = layer.experts;
    }
    return slots;
}

}  // namespace

SlotCounts no_slots(const StrategyProblem& problem) {
    return {problem.memory.devices.size(), std::vector<std::int32_t>(problem.model.layers.size(), 0)};
}

bool may_leave_cpu(const StrategyProblem& problem, std::size_t layer) {
    return problem.model.layers[layer].experts > 0 &&
           layer >= static_cast<std::size_t>(problem.request.cpu_moe_layers);
}

Candidate cpu_only(const StrategyProblem& problem) {
    Candidate candidate{.strategy = Strategy::CpuOnly,
                        .slots = no_slots(problem),
                        .hit_rates = std::vector<double>(problem.model.layers.size(), 0)};
    add_time(problem, candidate);
    return candidate;
}

Candidate cached(const StrategyProblem& problem) {
    SlotCounts slots = shared_slots(problem);
    const Strategy strategy = all_resident(problem, slots) ? Strategy::Resident : Strategy::Cache;
    Candidate candidate{.strategy = strategy, .slots = std::move(slots), .hit_rates = {}};
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        candidate.hit_rates.push_back(problem.curves.hit_rate(i, residents(problem, candidate, i)));
    }
    add_time(problem, candidate);
    return candidate;
}

Candidate fixed(const StrategyProblem& problem) {
    SlotCounts slots = problem.profiled ? shared_slots(problem) : whole_layers(problem);
    Candidate candidate{.strategy = Strategy::Static, .slots = std::move(slots), .hit_rates = {}};
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        candidate.hit_rates.push_back(problem.curves.hit_rate(i, slots_of_layer(candidate.slots, i)));
    }
    add_time(problem, candidate);
    return candidate;
}

}  // namespace coterie::expert_cache
