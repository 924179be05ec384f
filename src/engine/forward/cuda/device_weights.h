#pragma once

#include <cstdint>
#include <unordered_map>

#include "engine/forward/cuda/device_arena.h"
#include "engine/forward/weight_collector.h"

namespace coterie::engine {

/// The dense weights of a model in a device's memory.
class DeviceWeights {
  public:
    /// Copies everything on the list. Throws OutOfMemory.
    DeviceWeights(CudaDevice& device, const WeightList& list);

    const std::byte* at(const models::Matrix& matrix) const { return matrices_.at(matrix.data); }
    /// Null for an empty vector.
    const float* at(const models::Vector& vector) const {
        return vector.empty() ? nullptr : vectors_.at(vector.data());
    }
    std::uint64_t bytes() const { return arena_.bytes(); }

  private:
    DeviceArena arena_;
    std::unordered_map<const std::byte*, const std::byte*> matrices_;  ///< by their bytes in RAM
    std::unordered_map<const float*, const float*> vectors_;
};

}  // namespace coterie::engine
