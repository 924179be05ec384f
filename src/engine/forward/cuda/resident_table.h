#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/forward/cuda/device_arena.h"
#include "engine/forward/weight_collector.h"
#include "expert_cache/expert_cache.h"

namespace coterie::engine {

/// Where a layer's experts stand in the device's memory, for kernels: a copy of the cache's table as of a
/// step's begin. The step's epoch in the cache keeps every slot that the copy names as it is.
class ResidentTable {
  public:
    ResidentTable(CudaDevice& device, DeviceArena& arena, const WeightList& list);

    /// Queues the copy where the cache's table of its device `index` has changed.
    void refresh(const expert_cache::ExpertCache& cache, std::int32_t index, Stream& stream);
    /// Whether the device held every expert when the table was last refreshed.
    bool complete() const { return complete_; }
    /// [experts]: for other addresses of one layer, for this step only: what a prompt streams. Then `send`.
    std::span<std::uint64_t> edit(int layer);
    /// Queues the copy of the whole table.
    void send(Stream& stream) const;
    void forget() { fresh_ = false; }

    /// [experts], on the device.
    const std::uint64_t* layer(int layer) const { return device_ + first_[static_cast<std::size_t>(layer)]; }
    /// [experts]: what the device reads.
    std::span<const std::uint64_t> host_layer(int layer) const;

  private:
    std::span<std::uint64_t> row(int layer) const;

    std::vector<std::int64_t> first_;  ///< [layers + 1]
    std::unique_ptr<PinnedMemory> host_;
    std::uint64_t* device_ = nullptr;
    std::uint32_t version_ = 0;
    bool fresh_ = false;
    bool complete_ = false;
};

}  // namespace coterie::engine
