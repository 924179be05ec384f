#pragma once

#include "devices/cuda/cuda_device.h"
#include "kv_cache/page_memory.h"

namespace coterie::engine {

/// A KV cache's pages in a device's memory.
class DevicePages final : public PageMemory {
  public:
    DevicePages(CudaDevice& device, std::uint64_t bytes);

    std::byte* base() const override {
        return reinterpret_cast<std::byte*>(static_cast<std::uint64_t>(memory_->address()));
    }
    std::uint64_t bytes() const override { return memory_->bytes(); }
    void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override;
    void read(std::span<std::byte> to, const std::byte* from) override;
    void write(std::byte* to, std::span<const std::byte> from) override;

  private:
    std::unique_ptr<DeviceMemory> memory_;
    std::unique_ptr<Stream> stream_;
};

}  // namespace coterie::engine
