#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "expert_cache/policy/policy.h"

namespace coterie::expert_cache {

/// One policy a layer: `experts` of the layer, and the slots that all devices have for it at first.
using PolicyFactory =
    std::function<std::unique_ptr<Policy>(std::int32_t layer, std::int32_t experts, std::int32_t slots)>;

struct UploadOptions {
    static constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};

    std::uint64_t bytes_per_token = kNoBudget;  ///< granted at a step's end, a device
    std::uint64_t budget_tokens = 4;            ///< at most so many tokens' budget is saved up
    /// One that has begun slows the CPU's reading: large ones cost points of speed
    /// (expert_cache_simulated.md).
    std::uint64_t chunk_bytes = std::uint64_t{256} << 10;
    std::int32_t chunks_in_flight = 3;  ///< each has a pinned staging buffer
    std::int32_t queue_length = 32;     ///< uploads a device has waiting or running
    /// A chunk waits no longer than this for the CPU to stop reading.
    Nanoseconds longest_yield = std::chrono::microseconds(500);
    /// A copy that takes longer means that the device is lost.
    Nanoseconds watchdog = std::chrono::seconds(5);
};

enum class Maintenance {
    Thread,  ///< the cache has a thread that uploads
    Manual,  ///< the owner calls `maintain`
};

struct CacheOptions {
    /// [devices][layers], spare slots included. Where empty, `bytes` decides.
    std::vector<std::vector<std::int32_t>> slots;
    /// [devices]: memory for slots, in equal parts to all of the device's layers with experts.
    std::vector<std::uint64_t> bytes;
    /// [devices]: the layers whose experts `bytes` are for, where each device runs its own. Empty: all.
    struct Layers {
        std::int32_t begin;
        std::int32_t end;
    };
    std::vector<Layers> layers;
    /// Experts of the layers before it stay on the host.
    std::int32_t first_layer = 0;
    /// [layers]: exclusive residency, with so many places in RAM for experts that no device holds; the rest
    /// is read from the model's file. Empty: RAM holds all of them.
    std::vector<std::int32_t> host_places;
    /// Slots of a device and layer that are kept free for fetches and uploads: at most one in four, and none
    /// where all of a layer's experts have a slot.
    std::int32_t spare_slots = 2;
    /// Uses that a step remembers until its end; more are worked in at once.
    std::int32_t logged_uses = 1 << 14;
    /// How long `borrow`, `resize` and `rebalance` wait for steps, leases and copies to let go.
    Nanoseconds patience = std::chrono::seconds(2);
    UploadOptions uploads;
    Maintenance maintenance = Maintenance::Thread;
#ifdef NDEBUG
    bool poison_freed = false;
#else
    bool poison_freed = true;
#endif
};

}  // namespace coterie::expert_cache
