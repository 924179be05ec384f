#pragma once

#include <cstdint>

#include "engine/forward/activation_store.h"
#include "engine/forward/cuda/device_arena.h"
#include "engine/forward/weight_collector.h"
#include "kernels/cuda/moe.h"

namespace coterie::engine {

/// The memory behind `cuda::Mailbox`.
class HostMailbox {
  public:
    /// `width`: of the layers' inputs and outputs. `keep_values`: some expert reads binary32 inputs.
    HostMailbox(CudaDevice& device, const WeightList& list, std::int64_t tokens, std::int64_t width,
                bool keep_values);

    const cuda::Mailbox& view() const { return view_; }
    /// Token t's input to the layer that was asked for.
    ActivationRow input(std::int64_t t, std::int64_t columns) const;

  private:
    std::unique_ptr<PinnedMemory> memory_;
    cuda::Mailbox view_;
};

}  // namespace coterie::engine
