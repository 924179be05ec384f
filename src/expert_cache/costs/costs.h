#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What work and transfers cost on this machine, measured or given. The planner decides by these numbers and
/// by nothing else. All rates are bytes per second, all times seconds.
namespace coterie::expert_cache {

/// What computing one expert costs beside reading its bytes.
struct ComputeCosts {
    double expert_seconds = 0;  ///< whatever the number of tokens: dispatch, uneven ends
    double row_seconds = 0;     ///< per token that chose the expert
};

/// Of the CPU with all its threads.
struct CpuCosts {
    double read_bytes_per_second = 0;   ///< of RAM, with all links idle
    double handoff_seconds = 0;         ///< a layer's activations from its device to the CPU, results back
    std::vector<ComputeCosts> compute;  ///< [kinds]
};

/// Of one accelerator and the link from RAM to it.
struct DeviceCosts {
    double link_bytes_per_second = 0;            ///< from RAM, with nothing else reading it
    double contended_link_bytes_per_second = 0;  ///< while the CPU and all other links read too
    double copy_seconds = 0;                     ///< of each copy, whatever its size
    double memory_bytes_per_second = 0;          ///< of the device's own memory
    double handoff_seconds = 0;                  ///< a layer's activations to this device, results back
    std::vector<ComputeCosts> compute;           ///< [kinds]
};

struct Costs {
    std::vector<std::string>
        kinds;  ///< names of expert kinds: equal types and shapes, so equal compute costs
    CpuCosts cpu;
    std::vector<DeviceCosts> devices;
    double ram_bytes_per_second = 0;  ///< what the CPU and all links read together at most
};

/// Throws InvalidArgument naming `origin` (a file, or "the probe") and the field where a rate is not
/// positive, a time is negative, either is not finite, or a list of compute costs does not match the kinds.
void check_costs(const Costs& costs, std::string_view origin);

/// An expert's weights are read while rows are computed: the slower of both counts.
inline double expert_seconds(const ComputeCosts& compute, double read_seconds, std::int64_t tokens) {
    return compute.expert_seconds + std::max(read_seconds, static_cast<double>(tokens) * compute.row_seconds);
}

/// One expert of `kind` for `tokens` tokens by all threads, links idle.
inline double cpu_expert_seconds(const Costs& costs, std::size_t kind, std::uint64_t bytes,
                                 std::int64_t tokens) {
    return expert_seconds(costs.cpu.compute[kind],
                          static_cast<double>(bytes) / costs.cpu.read_bytes_per_second, tokens);
}

/// The same from a slot of a device.
inline double device_expert_seconds(const Costs& costs, std::size_t device, std::size_t kind,
                                    std::uint64_t bytes, std::int64_t tokens) {
    const DeviceCosts& at = costs.devices[device];
    return expert_seconds(at.compute[kind], static_cast<double>(bytes) / at.memory_bytes_per_second, tokens);
}

}  // namespace coterie::expert_cache
