#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/engine.h"
#include "engine/probe/machine_profile.h"

namespace coterie::cli::bench {

/// What experts moved where devices hold some: bytes by their path, and what each path can carry.
struct CacheUse {
    std::uint64_t hits = 0;  ///< uses of experts, token by token
    std::uint64_t misses = 0;
    std::uint64_t cpu_bytes = 0;       ///< read by the CPU from RAM
    std::uint64_t slot_bytes = 0;      ///< read by devices from their slots
    std::uint64_t fetched_bytes = 0;   ///< copied to slots for a step that waits
    std::uint64_t uploaded_bytes = 0;  ///< copied to slots beside steps
    std::uint64_t streamed_bytes = 0;  ///< copied through a prompt's ring
    std::uint64_t linked_bytes = 0;    ///< read by a GPU over its link while it computes
    std::uint64_t cpu_uses = 0;        ///< misses that a GPU's steps left to the CPU

    double hit_rate() const;  ///< 0 where there was no use
    std::uint64_t link_bytes() const {
        return fetched_bytes + uploaded_bytes + streamed_bytes + linked_bytes;
    }
};

/// Counts since the engine was made; all 0 without devices. A GPU's are without what its kernels read.
CacheUse cache_use(engine::Engine& engine);
/// For steps of one token on a GPU, adds what its kernels read of experts: hits in their slots, and over the
/// link the misses that the CPU did not compute. Layers count as of one mean size. Other engines' `use` is
/// complete.
void add_kernel_reads(engine::Engine& engine, CacheUse& use);
/// What came between two counts.
CacheUse operator-(const CacheUse& later, const CacheUse& earlier);
CacheUse operator+(const CacheUse& a, const CacheUse& b);

/// Bytes per second, as measured by now; 0: not known.
struct PathRates {
    double ram = 0;
    double links = 0;    ///< of all devices together
    double devices = 0;  ///< of all simulated devices' own memory together; of GPUs' the mean
};
/// Of simulated devices as the engine knows them; of GPUs as `machine` has them (null: not known).
PathRates path_rates(engine::Engine& engine, const engine::MachineProfile* machine);
/// Of GPUs by their names. A token goes through one after the other, so their memory counts as of one GPU of
/// their mean rate.
PathRates path_rates(const engine::MachineProfile& machine, std::span<const std::string> gpus);

/// Other weights than routed experts', by who reads them.
struct DenseBytes {
    double cpu = 0;
    double device = 0;
};
/// Seconds that the bytes alone would take, all paths at once; 0 where a rate is not known.
double limit_seconds(const CacheUse& use, const PathRates& rates, const DenseBytes& dense);

}  // namespace coterie::cli::bench
