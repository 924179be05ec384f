#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/forward/expert_pass.h"
#include "engine/forward/layer_range.h"
#include "engine/forward/link_share.h"
#include "engine/forward/step.h"
#include "expert_cache/cache_options.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/profile.h"
#include "kv_cache/page_memory.h"
#include "kv_cache/state_layout.h"
#include "models/model.h"

namespace coterie::engine {

/// What a forward pass on devices is made for.
struct DeviceForwardOptions {
    std::vector<int> devices = {0};            ///< each runs some of the layers, in this order
    std::vector<double> split;                 ///< [devices]: parts of the layers; empty: by their memory
    std::vector<std::uint64_t> memory_limits;  ///< [devices], bytes; 0 or empty: what is free, less a reserve
    std::int64_t max_tokens = 512;             ///< that a device works on at a time
    std::int64_t context = 4096;               ///< positions of all sequences together
    const StateLayout* layout = nullptr;       ///< of the KV cache; outlives the pass
    std::uint64_t pages = 0;                   ///< of the KV cache; they are taken from the same memory

    /// The files' bytes, where they are this program's own memory and may be pinned; else empty.
    std::vector<std::span<const std::byte>> host_memory;
    std::optional<MissCosts> miss_costs;  ///< nothing: measured at the start

    expert_cache::PolicyFactory policies;
    expert_cache::CacheOptions cache;  ///< `bytes` is filled in
    expert_cache::Learning learning = expert_cache::Learning::On;
    expert_cache::RoutingProfile* profile = nullptr;  ///< counts what is learnt from; null: nothing does
};

/// Where a device's memory went.
struct DeviceMemoryUse {
    LayerRange layers;                  ///< that it runs
    std::uint64_t dense_bytes = 0;      ///< weights that every token needs
    std::uint64_t state_bytes = 0;      ///< KV cache
    std::uint64_t workspace_bytes = 0;  ///< of steps
    std::uint64_t slot_bytes = 0;       ///< experts
};

/// Counts of one device since the start.
struct DeviceCounts {
    std::uint64_t missed = 0;  ///< (token, layer, expert) uses that the CPU computed
    std::uint64_t layers_with_misses = 0;
    double cpu_seconds = 0;            ///< that the CPU took for them
    double posting_seconds = 0;        ///< of the device, to hand layers over ...
    double waiting_seconds = 0;        ///< ... to wait for the CPU when it had done its own part ...
    double reading_seconds = 0;        ///< ... and to read what the CPU had computed
    std::uint64_t streamed_bytes = 0;  ///< of prompts' experts, over the link

    DeviceCounts& operator+=(const DeviceCounts& other);
};

/// Counts since the start.
struct DeviceForwardStatistics {
    DeviceCounts all;                   ///< of all devices
    std::vector<DeviceCounts> devices;  ///< of each
    double step_seconds = 0;            ///< of all steps of at most 8 tokens, from launch to end
    double host_seconds = 0;            ///< beside that, before and after
};

/// Whole steps of a model on devices, each of which runs some of the layers: their dense weights and keys and
/// values live there, their experts in its part of the cache, and what the cache lacks the CPU computes
/// beside it. Results are those of `CpuOps`, bit for bit, but for whole cells of prompts
/// (docs/adr/0008-prompt-cells.md).
class DeviceForward {
  public:
    virtual ~DeviceForward() = default;

    /// Memory of the devices for `options.pages` pages of the KV cache; once.
    virtual std::unique_ptr<PageMemory> take_pages() = 0;
    /// Of any number of tokens; with several devices, parts of them are on all devices at once.
    virtual void step(const Step& step) = 0;

    virtual expert_cache::ExpertCache* cache() = 0;  ///< null for a model without routed experts
    virtual int devices() const = 0;
    virtual DeviceMemoryUse memory_use(int device) const = 0;
    virtual std::string device_name(int device) const = 0;
    virtual DeviceForwardStatistics statistics() = 0;
    /// Whether the devices read experts from RAM without a copy in between.
    virtual bool reads_host_memory() const = 0;
};

/// Empty where the model can run on a device; else the part of it that only the CPU computes so far, for one
/// line to the user.
std::string unsupported_on_device(const models::Model& model);

/// Copies the dense weights and allocates everything that steps need. Throws Unsupported where no backend is
/// built in or the model cannot run there, OutOfMemory where it does not fit. `model` and `pass` must outlive
/// it.
std::unique_ptr<DeviceForward> make_device_forward(const models::Model& model, ExpertPass& pass,
                                                   DeviceForwardOptions options);

}  // namespace coterie::engine
