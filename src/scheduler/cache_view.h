#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/scheduler.h"

namespace coterie::scheduler {

/// A layer's experts at one moment.
struct LayerView {
    int layer = 0;
    std::uint64_t expert_bytes = 0;
    std::vector<std::int32_t> device;   ///< [experts] that holds each; -1: RAM only
    std::vector<std::int32_t> slots;    ///< [devices]
    std::vector<std::uint64_t> uses;    ///< [experts] since the start
    std::vector<std::uint64_t> misses;  ///< [experts] uses without a device that held it
};

/// A device's part of the cache. Counts since the start.
struct DeviceView {
    std::uint64_t hits = 0;
    std::uint64_t uploads = 0;
    std::uint64_t fetches = 0;
    std::uint64_t moved_bytes = 0;  ///< over the link
    std::uint64_t paid_back = 0;
    std::uint64_t evictions = 0;
    std::uint64_t failures = 0;
    double waited_seconds = 0.0;
    std::uint64_t resident = 0;
    std::uint64_t slot_bytes = 0;  ///< memory mapped for slots now
    bool lost = false;
};

/// Where experts are and what they did, and what holds the rest of the memory.
struct CacheView {
    std::vector<LayerView> layers;  ///< those with experts
    std::vector<DeviceView> devices;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t model_bytes = 0;         ///< of the file
    std::uint64_t expert_bytes = 0;        ///< of all routed experts
    std::uint64_t kv_bytes = 0;            ///< of all pages
    std::uint64_t kv_used_bytes = 0;       ///< of pages in use
    std::uint64_t resident_ram_bytes = 0;  ///< of this process, mapped files included
};

/// Any thread may ask; running steps are not held up.
CacheView read_cache(const Scheduler& scheduler);

}  // namespace coterie::scheduler
