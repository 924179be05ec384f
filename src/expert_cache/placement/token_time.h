#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/facts.h"
#include "expert_cache/placement/slot_shares.h"

namespace coterie::expert_cache {

/// Where a layer's experts are found while one token is generated.
struct LayerService {
    std::int32_t owner;  ///< the device that runs the rest of the layer, or kNoDevice
    double hit_rate;
    std::vector<std::int32_t> slots;  ///< [devices]: hits fall on devices by their share of the slots
    std::int32_t spare_slots;         ///< of each device with slots
};

/// Expected seconds from the layer's routing to its experts' results for one token: the planner's finish,
/// weighed by how likely each number of misses is if misses were independent.
double expert_layer_seconds(const LayerFacts& layer, const Costs& costs, const LayerService& service);

/// Seconds to read the layer's other weights where they run.
double dense_layer_seconds(const LayerFacts& layer, const Costs& costs, std::int32_t owner);

/// Seconds that a hit saves over a miss: on the CPU against the fastest device.
double saved_seconds(const LayerFacts& layer, const Costs& costs);

}  // namespace coterie::expert_cache
