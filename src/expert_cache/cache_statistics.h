#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace coterie::expert_cache {

struct DeviceStatistics {
    std::uint64_t hits = 0;
    std::uint64_t uploads = 0;
    std::uint64_t fetches = 0;
    std::uint64_t uploaded_bytes = 0;  ///< fetches included
    std::uint64_t fetched_bytes = 0;
    std::uint64_t moved_bytes = 0;  ///< from slot to slot
    std::uint64_t paid_back = 0;    ///< uploads and fetches that were hit later
    std::uint64_t evictions = 0;
    std::uint64_t returned = 0;   ///< evicted experts whose bytes went back to RAM (exclusive residency)
    std::uint64_t forgotten = 0;  ///< evicted ones that only the file has now
    std::uint64_t failures = 0;   ///< uploads and fetches that did not arrive
    Nanoseconds waited{0};        ///< by `borrow`, `resize` and `rebalance`
    std::uint64_t resident = 0;   ///< experts now
    std::uint64_t mapped_bytes = 0;
    bool out = false;   ///< left out now: lost, or until it is tried again
    bool lost = false;  ///< for good
};

/// Counts since the cache was made. A token that uses an expert is a hit or a miss.
struct CacheStatistics {
    std::uint64_t tokens = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::vector<DeviceStatistics> devices;
};

}  // namespace coterie::expert_cache
