#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "expert_cache/costs/costs.h"

/// What a machine's paths and cores give, as `coterie probe` measured it: the numbers that expected tokens
/// per second follow from. All rates are bytes per second unless they say otherwise, all times seconds; each
/// is the median of several.
namespace coterie::engine {

/// What was measured, and with what: a profile of anything else does not count.
struct MachineIdentity {
    std::string program;          ///< its version
    std::string processor;        ///< as its maker calls it
    std::string instruction_set;  ///< in use
    int threads = 0;
    std::uint64_t ram_bytes = 0;
    std::vector<std::string> gpus;  ///< UUIDs, in the order of their numbers

    friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

struct ReadRate {
    int threads = 0;
    double bytes_per_second = 0;

    friend bool operator==(const ReadRate&, const ReadRate&) = default;
};

/// How many tokens share an expert in the times of it.
inline constexpr std::array<std::int64_t, 4> kProbedTokens{1, 2, 4, 8};

/// One expert out of RAM, on all threads.
struct ExpertTimes {
    std::string kind;  ///< types and shapes as placement_facts.h names them
    std::uint64_t bytes = 0;
    std::int64_t multiply_adds = 0;                         ///< per token
    std::array<double, kProbedTokens.size()> seconds = {};  ///< [kProbedTokens]

    friend bool operator==(const ExpertTimes&, const ExpertTimes&) = default;
};

/// One GPU and its link.
struct GpuTimes {
    int index = 0;
    std::string name;
    double to_device = 0;            ///< from pinned memory, with all else idle
    double from_device = 0;          ///< to pinned memory
    double both_ways = 0;            ///< both directions together, added up
    double contended_to_device = 0;  ///< while the CPU reads RAM with all threads
    double contended_ram_read = 0;   ///< what the CPU reads meanwhile
    double pageable_to_device = 0;   ///< from memory that is not pinned
    double pageable_from_device = 0;
    double own_memory = 0;        ///< what a copy within it reads and writes
    double hand_off_seconds = 0;  ///< one word to the host and one back
    /// [experts of the profile] of one expert that the GPU reads over the link while it computes one token; 0
    /// where it cannot.
    std::vector<double> linked_expert_seconds = {};

    friend bool operator==(const GpuTimes&, const GpuTimes&) = default;
};

struct MachineProfile {
    MachineIdentity machine;
    std::string measured_at;          ///< UTC, "2026-01-31T12:00:00Z"
    std::vector<ReadRate> ram_reads;  ///< by ascending threads, the last with all; never empty
    /// Something else wanted the cores meanwhile: times are too long, and nothing should be planned from
    /// them.
    bool crowded = false;
    double integer_peak = 0;  ///< operations per second of 8-bit dot products, all threads
    std::vector<ExpertTimes> experts;
    std::vector<GpuTimes> gpus;  ///< those of the machine that the program can use

    double ram_read_rate() const { return ram_reads.back().bytes_per_second; }
    /// What the CPU and a link read together at most.
    double ram_rate() const;
    /// Null where the kind was not measured.
    const ExpertTimes* find(const std::string& kind) const;
    /// Null where the GPU was not measured.
    const GpuTimes* find_gpu(int index) const;

    friend bool operator==(const MachineProfile&, const MachineProfile&) = default;
};

/// The planner's two numbers from the measured times: what a token adds once products and not RAM are the
/// limit, and what an expert costs beside.
expert_cache::ComputeCosts compute_costs(const ExpertTimes& times, const MachineProfile& profile);

}  // namespace coterie::engine
