#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/device.h"
#include "expert_cache/uploads/host_expert.h"

namespace coterie::engine {

/// A ring of buffers on a device through which a prompt's missing experts stream: copies run ahead on a
/// stream of their own, and each waits only for the product that last read its buffer.
class PromptRing {
  public:
    static constexpr std::int64_t kBuffers = 4;

    static std::uint64_t bytes(std::uint64_t largest_expert) {
        return static_cast<std::uint64_t>(kBuffers) * buffer_bytes(largest_expert);
    }

    PromptRing(Device& device, DeviceAddress memory, std::uint64_t largest_expert);

    /// Queues the copy; what is queued on `compute` after this call finds the expert at the address returned.
    DeviceAddress copy(const expert_cache::HostExpert& expert, Stream& compute);
    /// The product that reads the last expert is queued.
    void consumed(Stream& compute);

  private:
    static std::uint64_t buffer_bytes(std::uint64_t largest_expert) {
        return (largest_expert + 255) / 256 * 256;
    }

    struct Buffer {
        DeviceAddress address;
        std::unique_ptr<Event> filled;
        std::unique_ptr<Event> free;
    };
    std::unique_ptr<Stream> stream_;
    std::vector<Buffer> buffers_;
    std::size_t next_ = 0;
};

}  // namespace coterie::engine
