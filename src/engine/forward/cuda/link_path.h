#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/forward/cuda/device_arena.h"
#include "engine/forward/link_share.h"
#include "engine/forward/weight_collector.h"

namespace coterie::engine {

/// The experts that the GPU can read over the link while it computes them, without a copy in between.
class LinkPath {
  public:
    /// `readable`: the device reads the files' bytes where they are.
    LinkPath(CudaDevice& device, DeviceArena& arena, const WeightList& list, bool readable);

    /// [experts], on the device: where the layer's matrices lie in the host's memory; null where the CPU has
    /// to compute what is missing.
    struct Addresses {
        const std::uint64_t* gate = nullptr;
        const std::uint64_t* up = nullptr;
        const std::uint64_t* down = nullptr;
    };
    Addresses addresses(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }

    /// Of the missing experts in a step of `tokens` rows. Only single rows share: rows that miss the same
    /// expert would read it once each.
    cuda::LinkShare share(int layer, std::int64_t tokens) const;
    void set_costs(const MissCosts& costs) { share_ = cheapest_share(costs); }

  private:
    std::vector<Addresses> layers_;
    cuda::LinkShare share_;
};

}  // namespace coterie::engine
