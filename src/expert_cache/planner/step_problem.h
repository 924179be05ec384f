#pragma once

#include <cstdint>
#include <span>

namespace coterie::expert_cache {

/// In place of a device's number: not resident on any, or work of the CPU.
inline constexpr std::int32_t kNoDevice = -1;

/// An expert that at least one token of a step chose.
struct UsedExpert {
    std::int32_t expert;
    std::int32_t tokens;  ///< at least 1
    std::int32_t device;  ///< that holds it, or kNoDevice
    /// What it is worth, in seconds, that a fetch leaves the expert in a slot: about the time that its upload
    /// would take from later work. 0 where the cache does not want it.
    float fetch_gain_seconds = 0;
};

/// The experts of one layer in one step and where they may run.
struct StepProblem {
    std::span<const UsedExpert> used;           ///< each expert once
    std::span<const std::int32_t> spare_slots;  ///< [devices]: fetches a device can take in this step
    std::uint64_t expert_bytes;                 ///< of each expert of the layer
    std::int32_t kind = 0;                      ///< of Costs
    std::int32_t home = kNoDevice;  ///< the device that runs the rest of the layer; kNoDevice: the CPU does
};

/// What one used expert does.
enum class Work : std::uint8_t {
    Cpu,       ///< computed by the CPU from RAM
    Resident,  ///< computed from its slot, on the device that holds it
    Fetch,     ///< copied to a device's spare slot and computed there
};

struct Assignment {
    Work work = Work::Cpu;
    std::int32_t device = kNoDevice;

    friend bool operator==(const Assignment&, const Assignment&) = default;
};

}  // namespace coterie::expert_cache
