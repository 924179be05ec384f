#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/cuda/cuda_device.h"

namespace coterie::engine {

/// Memory of a device that is taken at start and given back at the end.
class DeviceArena {
  public:
    explicit DeviceArena(CudaDevice& device) : device_(device) {}

    /// 256-byte aligned, undefined content. Throws OutOfMemory.
    template <typename T>
    T* take(std::int64_t count) {
        const auto bytes = std::max<std::uint64_t>(static_cast<std::uint64_t>(count) * sizeof(T), 256);
        pieces_.push_back(device_.allocate(bytes));
        bytes_ += bytes;
        return reinterpret_cast<T*>(static_cast<std::uint64_t>(pieces_.back()->address()));
    }
    std::uint64_t bytes() const { return bytes_; }

  private:
    CudaDevice& device_;
    std::vector<std::unique_ptr<DeviceMemory>> pieces_;
    std::uint64_t bytes_ = 0;
};

inline DeviceAddress device_address(const void* p) {
    return DeviceAddress{reinterpret_cast<std::uint64_t>(p)};
}

}  // namespace coterie::engine
