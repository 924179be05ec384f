#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "expert_cache/placement/facts.h"
#include "expert_cache/placement/placement.h"

namespace coterie::expert_cache {

/// Everything that must have its place before experts get theirs.
struct MemoryPlan {
    std::vector<DevicePlan> devices;          ///< without slots; unused_bytes is what slots may take
    std::vector<std::int32_t> owner;          ///< [layers]: the device that runs the layer, or kNoDevice
    RamPlan ram;                              ///< without experts
    std::uint64_t ram_for_experts_bytes = 0;  ///< what is left of RAM
};

/// Why there is no room; `way_out` and `nearest` are left to the caller.
using MemoryResult = std::variant<MemoryPlan, Refusal>;

/// Throws InvalidArgument where the model and the request together overflow 64 bits.
MemoryResult plan_memory(const ModelFacts& model, const std::vector<DeviceFacts>& devices,
                         const PlacementRequest& request);

}  // namespace coterie::expert_cache
