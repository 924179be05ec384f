#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a placement is planned from. Sizes are bytes.
namespace coterie::expert_cache {

/// One layer of a model.
struct LayerFacts {
    std::uint64_t dense_bytes = 0;         ///< all its weights but the routed experts
    std::uint64_t kv_bytes_per_token = 0;  ///< what each token of context adds
    std::uint64_t state_bytes = 0;         ///< of fixed size, per sequence
    std::int32_t experts = 0;              ///< 0: a dense layer
    std::int32_t experts_used = 0;         ///< per token
    std::uint64_t expert_bytes = 0;        ///< of one expert: gate, up and down
    std::int32_t kind = 0;                 ///< of Costs
};

struct ModelFacts {
    std::vector<LayerFacts> layers;
    std::uint64_t embedding_bytes = 0;  ///< the table of tokens: always in RAM
    std::uint64_t output_bytes = 0;     ///< the output matrix, read once per token
    std::uint64_t workspace_bytes = 0;  ///< activations of the largest step, wherever layers run
};

struct DeviceFacts {
    std::string name;
    std::uint64_t free_bytes = 0;
};

/// Uses of each expert, [layers][experts]; a layer without experts has an empty list.
using UsageCounts = std::vector<std::vector<double>>;

/// What RAM holds of the experts beside devices.
enum class RamContent {
    Auto,       ///< exclusive where RAM cannot hold all experts, but RAM and devices together can
    Inclusive,  ///< all, as far as it has room
    Exclusive,  ///< only those that no device holds
};

/// Where all but the routed experts runs.
enum class DensePlace { Cpu, Devices };

struct PlacementRequest {
    std::int64_t context = 4096;
    DensePlace dense = DensePlace::Cpu;
    /// `--vram`: what may be used of each device, reserve included; missing entries: all that is free.
    std::vector<std::uint64_t> vram_bytes;
    std::uint64_t ram_bytes = 0;          ///< the machine's, or `--ram`
    std::uint64_t machine_ram_bytes = 0;  ///< what `--ram` may be raised to
    std::uint64_t reserve_bytes = 0;      ///< of each device, stays free
    std::uint64_t staging_bytes = 0;      ///< pinned RAM per device, through which uploads go
    enum class Cache { Auto, Off } cache = Cache::Auto;
    /// `--expert-cache SLOTS`: experts of each layer that all devices hold together, in place of what fits.
    std::optional<std::int32_t> slots_per_layer;
    RamContent ram_content = RamContent::Auto;
    std::int32_t cpu_moe_layers = 0;  ///< `--n-cpu-moe`: experts of the first layers stay on the CPU
    std::int32_t spare_slots = 2;     ///< of a layer's slots, kept for fetches where not all experts fit
};

}  // namespace coterie::expert_cache
