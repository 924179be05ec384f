#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "gguf/writer.h"
#include "synth/router.h"
#include "synth/routing_model.h"
#include "synth/tensor_plan.h"

namespace coterie::synth {

/// Makes the bytes of planned tensors, in stretches of rows. A stretch's random numbers depend on the seed,
/// the tensor's name and the stretch's place alone, so any number of threads gives the same file.
class WeightMaker {
  public:
    /// `model` and `reserved` must outlive it. `threads` as for ThreadPool.
    WeightMaker(const RoutingModel& model, const ReservedPart& reserved, std::uint64_t seed, int threads);

    /// Appends all of the tensor, a few MiB at a time, and tells `progress` how many bytes came.
    void write(const PlannedTensor& tensor, gguf::TensorOutput& output,
               FunctionRef<void(std::uint64_t bytes)> progress);

  private:
    const RoutingModel& model_;
    const ReservedPart& reserved_;
    std::uint64_t seed_;
    ThreadPool pool_;
    std::vector<std::vector<std::byte>> buffers_;  ///< one stretch each
};

}  // namespace coterie::synth
