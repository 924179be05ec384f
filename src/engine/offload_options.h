#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "devices/fake_spec.h"
#include "engine/forward/link_share.h"
#include "expert_cache/cache_options.h"
#include "expert_cache/costs/costs.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/policy/registry.h"
#include "expert_cache/prefetch/prefetcher.h"
#include "expert_cache/profile.h"

namespace coterie::engine {

/// Which devices hold experts, and how their cache goes about it.
struct OffloadOptions {
    /// GPUs that run whole steps, each some of the layers, and hold experts with what memory is left; then
    /// there are no fake devices.
    std::vector<int> gpus;
    std::vector<double> gpu_split;                 ///< [gpus]: parts of the layers; empty: by their memory
    std::vector<std::uint64_t> gpu_memory_limits;  ///< [gpus], bytes; empty or 0: all
    /// The model's files were taken into memory, which GPUs may pin.
    bool pins_host_memory = false;
    /// Of GPUs' missing experts; nothing: measured at the start.
    std::optional<MissCosts> miss_costs;

    std::vector<FakeDeviceSpec> fake_devices;
    double ram_rate = 0;     ///< that fake devices and the CPU share, bytes per second; 0: no limit
    Clock* clock = nullptr;  ///< of the fake devices; null: real time. Outlives the engine

    std::string policy = std::string(expert_cache::kDefaultPolicy);
    /// Loaded hottest first at start; gives the layers their shares. Must fit the model.
    std::optional<expert_cache::RoutingProfile> profile;
    bool trains_profile = true;  ///< whether steps that teach the cache are counted in it
    expert_cache::Prefetch prefetch = expert_cache::Prefetch::Off;
    expert_cache::Learning learning = expert_cache::Learning::On;
    /// For the model's kinds of experts (placement_facts.h) and these devices; nothing: assumed.
    std::optional<expert_cache::Costs> costs;
    bool measures_costs = true;  ///< refines the costs by what steps take
    /// Slots or bytes; where both are empty, all of the devices' memory.
    expert_cache::CacheOptions cache;
    std::int32_t slots_per_layer = 0;  ///< of each device; 0: as many as its memory takes
    std::uint64_t memory_limit = 0;    ///< of each device, in bytes; 0: all of it
    /// Exclusive residency: RAM holds only experts that no device holds, in so many bytes; the model's file
    /// has the rest. Nothing: RAM holds all, as the file is mapped.
    std::optional<std::uint64_t> exclusive_ram_bytes;
    /// Fills all slots at start, also with experts that no profile knows: where nothing else would, or RAM
    /// has no room for them.
    bool fills_slots = false;
    /// Slots may be shared out anew between requests after so many tokens, where there is a profile; 0:
    /// never.
    std::uint64_t rebalance_tokens = 4096;
    /// Of a prompt, up to EngineOptions::window.
    enum class Windows {
        Planned,  ///< as small as streams without a wait
        Fixed,    ///< as large as allowed
    } windows = Windows::Planned;

    bool enabled() const { return !fake_devices.empty(); }
};

}  // namespace coterie::engine
