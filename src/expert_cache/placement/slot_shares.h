#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "expert_cache/placement/expected_hits.h"
#include "expert_cache/placement/facts.h"

namespace coterie::expert_cache {

/// Slots per layer of each device.
using SlotCounts = std::vector<std::vector<std::int32_t>>;  ///< [devices][layers]

struct SlotShareProblem {
    const ModelFacts& model;
    std::span<const std::uint64_t> device_bytes;  ///< for slots
    std::span<const std::int32_t> owner;          ///< [layers]: the device that runs the layer, or kNoDevice
    std::span<const std::int32_t> limits;         ///< [layers]: slots at most, over all devices
};

/// Fills the devices slot by slot with equal bytes for every layer.
SlotCounts share_equally(const SlotShareProblem& problem);

/// Fills the devices slot by slot, each to the layer where a byte saves most time. `saved_seconds`: [layers],
/// by a hit instead of a miss.
SlotCounts share_by_profile(const SlotShareProblem& problem, const HitCurves& curves,
                            std::span<const double> saved_seconds);

/// Slots of a layer on all devices together.
std::int32_t slots_of_layer(const SlotCounts& slots, std::size_t layer);
/// Experts of a layer that a cache holds at a time: of a complete layer all, else what spare slots leave.
std::int32_t residents_of_layer(const SlotCounts& slots, std::size_t layer, std::int32_t experts,
                                std::int32_t spare_slots);

}  // namespace coterie::expert_cache
