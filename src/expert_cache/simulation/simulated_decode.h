#pragma once

#include <cstdint>
#include <string>

#include "expert_cache/costs/costs.h"
#include "expert_cache/simulation/local_routing.h"

namespace coterie::expert_cache {

/// A model whose tokens are decoded one by one on a machine with one device, which all layers call home.
struct DecodeScenario {
    std::int32_t layers = 48;
    std::uint64_t expert_bytes = 0;
    std::uint64_t dense_bytes = 0;  ///< of a layer, read by the device before its experts
    RoutingOptions routing;
    std::int32_t slots = 0;  ///< of a layer, besides the spare ones
    std::int32_t spare_slots = 2;
    std::string policy = "admit";
    Costs costs;  ///< one device, one kind
    /// What the planner is told that a fetch of an admitted expert is worth, as a share of RAM's time for it.
    double fetch_gain = 0.3;
    std::uint64_t chunk_bytes = std::uint64_t{256} << 10;  ///< of uploads
    std::size_t queue_length = 32;                         ///< uploads waiting
    std::int64_t warm_up_tokens = 1024;
    std::int64_t tokens = 1024;
};

/// Sums over the measured tokens.
struct DecodeOutcome {
    std::int64_t uses = 0;
    std::int64_t hits = 0;
    std::int64_t fetches = 0;
    std::int64_t uploads = 0;
    double seconds = 0;         ///< as simulated
    double expert_seconds = 0;  ///< of it, from routing to the experts' results
    /// What experts take where their bytes move at full rates, all at once: of each layer the longer of the
    /// hits from the device's memory and the misses from RAM.
    double ideal_expert_seconds = 0;
    double dense_seconds = 0;

    double hit_rate() const { return static_cast<double>(hits) / static_cast<double>(uses); }
    double expert_share() const { return ideal_expert_seconds / expert_seconds; }
    double token_share() const { return (ideal_expert_seconds + dense_seconds) / seconds; }
};

/// Decodes in simulated time: the planner decides each layer, the policy what stays, and uploads use the link
/// while the CPU does not read. No tensors.
DecodeOutcome simulate_decode(const DecodeScenario& scenario);

}  // namespace coterie::expert_cache
