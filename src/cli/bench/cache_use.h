#pragma once

#include <cstdint>

#include "engine/engine.h"

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

    double hit_rate() const;  ///< 0 where there was no use
    std::uint64_t link_bytes() const { return fetched_bytes + uploaded_bytes + streamed_bytes; }
};

/// Counts since the engine was made; all 0 without devices.
CacheUse cache_use(engine::Engine& engine);
/// What came between two counts.
CacheUse operator-(const CacheUse& later, const CacheUse& earlier);
CacheUse operator+(const CacheUse& a, const CacheUse& b);

/// Bytes per second, as measured by now.
struct PathRates {
    double ram = 0;
    double links = 0;    ///< of all devices together
    double devices = 0;  ///< of all devices' own memory together
};
PathRates path_rates(engine::Engine& engine);

/// Seconds that the bytes alone would take, all paths at once, `dense_bytes` of other weights read by the
/// CPU.
double limit_seconds(const CacheUse& use, const PathRates& rates, double dense_bytes);

}  // namespace coterie::cli::bench
