#include "engine/forward/cuda/device_pages.h"

#include "engine/forward/cuda/device_arena.h"

namespace coterie::engine {

DevicePages::DevicePages(CudaDevice& device, std::uint64_t bytes)
    : memory_(device.allocate(bytes)), stream_(device.create_stream()) {}

void DevicePages::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    stream_->copy_on_device(device_address(to), device_address(from), bytes);
    stream_->synchronise();
}

void DevicePages::read(std::span<std::byte> to, const std::byte* from) {
    stream_->copy_to_host(to, device_address(from));
    stream_->synchronise();
}

void DevicePages::write(std::byte* to, std::span<const std::byte> from) {
    stream_->copy_to_device(device_address(to), from);
    stream_->synchronise();
}

}  // namespace coterie::engine
