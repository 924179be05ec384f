#include "expert_cache/placement/token_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "expert_cache/planner/plan_step.h"
#include "expert_cache/slots/shares.h"

namespace coterie::expert_cache {
namespace {

/// P(k of n) for independent draws.
double binomial(std::int32_t n, std::int32_t k, double probability) {
    if (probability <= 0) return k == 0 ? 1 : 0;
    if (probability >= 1) return k == n ? 1 : 0;
    const double log_ways = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
    return std::exp(log_ways + k * std::log(probability) + (n - k) * std::log1p(-probability));
}

/// The device furthest behind its share of the slots, when hits fell on devices as `given` says.
std::size_t next_device(const std::vector<std::int32_t>& given, const std::vector<std::int32_t>& slots) {
    std::size_t next = 0;
    for (std::size_t device = 1; device < slots.size(); ++device) {
        if (slots[device] * (given[next] + 1) > slots[next] * (given[device] + 1)) next = device;
    }
    return next;
}

}  // namespace

double expert_layer_seconds(const LayerFacts& layer, const Costs& costs, const LayerService& service) {
    const bool any_slots = std::accumulate(service.slots.begin(), service.slots.end(), 0) > 0;
    const std::int32_t most_hits = any_slots ? layer.experts_used : 0;
    const double hit_rate = any_slots ? service.hit_rate : 0;
    std::vector<std::int32_t> spare;
    for (const std::int32_t slots : service.slots)
        spare.push_back(spare_of(slots, service.spare_slots, Complete::No));
    StepWorkspace workspace(layer.experts_used, static_cast<std::int64_t>(costs.devices.size()));
    std::vector<Assignment> assignments(static_cast<std::size_t>(layer.experts_used));
    std::vector<UsedExpert> used(assignments.size(), {0, 1, kNoDevice});
    std::vector<std::int32_t> hits_on(service.slots.size(), 0);
    double seconds = 0;
    for (std::int32_t hits = 0; hits <= most_hits; ++hits) {
        if (hits > 0) {
            const std::size_t device = next_device(hits_on, service.slots);
            ++hits_on[device];
            used[static_cast<std::size_t>(hits - 1)].device = static_cast<std::int32_t>(device);
        }
        const double probability = binomial(layer.experts_used, hits, hit_rate);
        if (probability == 0) continue;
        const StepProblem problem{used, spare, layer.expert_bytes, layer.kind, service.owner};
        seconds += probability * plan_step(problem, costs, workspace, assignments);
    }
    return seconds;
}

double dense_layer_seconds(const LayerFacts& layer, const Costs& costs, std::int32_t owner) {
    const double rate = owner == kNoDevice
                            ? costs.cpu.read_bytes_per_second
                            : costs.devices[static_cast<std::size_t>(owner)].memory_bytes_per_second;
    return static_cast<double>(layer.dense_bytes) / rate;
}

double saved_seconds(const LayerFacts& layer, const Costs& costs) {
    const auto kind = static_cast<std::size_t>(layer.kind);
    const double on_cpu = cpu_expert_seconds(costs, kind, layer.expert_bytes, 1);
    double saved = 0;
    for (std::size_t device = 0; device < costs.devices.size(); ++device) {
        saved = std::max(saved, on_cpu - device_expert_seconds(costs, device, kind, layer.expert_bytes, 1));
    }
    return saved;
}

}  // namespace coterie::expert_cache
