#include "expert_cache/placement/strategy.h"

#include <fmt/format.h>
#include <optional>

namespace coterie::expert_cache {
namespace {

/// A cache must promise this much over a fixed placement, which needs no link and no luck.
constexpr double kLeastGain = 1.02;

std::string per_token(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

/// Copies per token that all links together manage in the token's time, of an average expert.
double copies_per_token(const StrategyProblem& problem, const Candidate& candidate) {
    double bytes = 0;
    double layers = 0;
    for (const LayerFacts& layer : problem.model.layers) {
        if (layer.experts == 0) continue;
        bytes += static_cast<double>(layer.expert_bytes);
        ++layers;
    }
    double copies = 0;
    for (const DeviceCosts& device : problem.costs.devices) {
        copies += candidate.seconds_per_token /
                  (device.copy_seconds + bytes / layers / device.contended_link_bytes_per_second);
    }
    return copies;
}

Choice fixed_or_cpu(const StrategyProblem& problem, const std::string& why) {
    Candidate cpu = cpu_only(problem);
    Candidate device = fixed(problem);
    const bool any = device.slots != no_slots(problem);
    if (any && device.seconds_per_token < cpu.seconds_per_token) {
        const std::string what = problem.profiled ? "the hottest experts stay" : "whole layers stay";
        return {std::move(device), fmt::format("{}: {} on the devices", why, what)};
    }
    const std::string slower =
        any ? fmt::format(" and fixed experts would take {} per token against {} without",
                          per_token(device.seconds_per_token), per_token(cpu.seconds_per_token))
            : std::string(" and no layer's experts fit");
    return {std::move(cpu), why + slower};
}

/// Why nothing may go to a device, or nothing.
std::optional<std::string> nothing_to_place(const StrategyProblem& problem) {
    if (problem.memory.devices.empty()) return "there is no device";
    bool any_experts = false;
    bool any_left = false;
    for (std::size_t i = 0; i < problem.model.layers.size(); ++i) {
        any_experts |= problem.model.layers[i].experts > 0;
        any_left |= may_leave_cpu(problem, i);
    }
    if (!any_experts) return "the model has no experts";
    if (!any_left) return "--cpu-moe or --n-cpu-moe keeps all experts on the CPU";
    return std::nullopt;
}

}  // namespace

Choice choose_strategy(const StrategyProblem& problem) {
    if (auto why = nothing_to_place(problem)) return {cpu_only(problem), std::move(*why)};
    Candidate cache = cached(problem);
    if (const auto slots = problem.request.slots_per_layer) {
        return {std::move(cache), fmt::format("--expert-cache {}", *slots)};
    }
    const double cpu_seconds = cpu_only(problem).seconds_per_token;
    if (cache.strategy == Strategy::Resident && cache.seconds_per_token < cpu_seconds) {
        return {std::move(cache), "every expert that may leave the CPU fits on the devices"};
    }
    if (problem.request.cache == PlacementRequest::Cache::Off)
        return fixed_or_cpu(problem, "--expert-cache off");
    if (cache.seconds_per_token >= cpu_seconds) {
        return fixed_or_cpu(problem, fmt::format("slots would take {} per token, the CPU alone {}",
                                                 per_token(cache.seconds_per_token), per_token(cpu_seconds)));
    }
    const double copies = copies_per_token(problem, cache);
    if (copies < cache.uploads_per_token) {
        return fixed_or_cpu(problem,
                            fmt::format("the links move {:.2g} experts in a token's time, a cache would "
                                        "change {:.2g}",
                                        copies, cache.uploads_per_token));
    }
    const double fixed_seconds = fixed(problem).seconds_per_token;
    if (!problem.profiled && cache.seconds_per_token * kLeastGain > fixed_seconds) {
        return fixed_or_cpu(problem,
                            fmt::format("a cache would take {} per token, whole layers {}",
                                        per_token(cache.seconds_per_token), per_token(fixed_seconds)));
    }
    const std::string gain = fmt::format("{} per token against {} with the CPU alone",
                                         per_token(cache.seconds_per_token), per_token(cpu_seconds));
    return {std::move(cache), gain};
}

}  // namespace coterie::expert_cache
