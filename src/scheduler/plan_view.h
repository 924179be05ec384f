#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace coterie::scheduler {

/// What one memory is and holds, in bytes.
struct MemoryView {
    std::string name;
    std::uint64_t capacity_bytes = 0;  ///< that this run may use; 0: not known
    double link_bytes_per_second = 0;  ///< to RAM, where it is known
    std::uint64_t dense_bytes = 0;     ///< weights that every token needs
    std::uint64_t kv_bytes = 0;
    std::uint64_t workspace_bytes = 0;
    std::uint64_t expert_bytes = 0;  ///< slots of a device; in RAM, what it keeps of the experts
};

/// A layer's weights.
struct LayerWeights {
    std::uint64_t dense_bytes = 0;   ///< all but the routed experts
    std::uint64_t expert_bytes = 0;  ///< of one expert
    std::int32_t experts = 0;
    std::vector<std::int32_t> slots;  ///< [devices]
};

/// What sits where.
struct PlanView {
    std::vector<MemoryView> devices;
    MemoryView ram;
    bool exclusive = false;  ///< RAM keeps only experts that no device holds
    std::vector<LayerWeights> layers;
};

/// Any thread may ask; running steps are not held up.
PlanView read_plan(const Scheduler& scheduler);

}  // namespace coterie::scheduler
