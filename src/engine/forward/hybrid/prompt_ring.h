#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "devices/device.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/uploads/host_expert.h"

namespace coterie::engine {

/// A ring of buffers on a device through which a prompt's missing experts stream, on a stream of copies of
/// its own. Each copy waits only for the product that last read its buffer.
///
/// Copies run ahead of products, and ahead of the routing too: while a layer's attention is computed, experts
/// that the layer will probably need are on their way already. One that is not needed after all gives its
/// buffer up when the layer is over.
class PromptRing {
  public:
    static constexpr std::int64_t kLeastBuffers = 4;

    static std::uint64_t bytes(std::uint64_t largest_expert, std::int64_t buffers = kLeastBuffers) {
        return static_cast<std::uint64_t>(buffers) * buffer_bytes(largest_expert);
    }

    /// `memory`: of `bytes(largest_expert, buffers)`.
    PromptRing(Device& device, DeviceAddress memory, std::uint64_t largest_expert, std::int64_t buffers);

    /// How many more may run ahead. Two buffers stay for experts that are asked for.
    std::int64_t room_ahead() const {
        return static_cast<std::int64_t>(buffers_.size()) - kKept - static_cast<std::int64_t>(ahead_);
    }
    /// Begins to copy an expert that may be needed. Requires: room_ahead() > 0.
    void run_ahead(expert_cache::ExpertKey key, const expert_cache::HostExpert& expert);
    bool is_ahead(expert_cache::ExpertKey key) const;

    /// What is queued on `compute` after this call finds the expert at the address returned. Copies it where
    /// it has not run ahead.
    DeviceAddress bring(expert_cache::ExpertKey key, const expert_cache::HostExpert& expert, Stream& compute);
    /// The product that reads the last expert brought is queued.
    void consumed(Stream& compute);

    /// Gives up what ran ahead and was not needed.
    void forget_ahead();
    /// The same, and waits until nothing reads RAM for the ring any more. Pending: it does not end.
    EventState settle(std::chrono::nanoseconds limit);

  private:
    static constexpr std::int64_t kKept = 2;
    static std::uint64_t buffer_bytes(std::uint64_t largest_expert) {
        return (largest_expert + 255) / 256 * 256;
    }

    struct Buffer {
        DeviceAddress address;
        std::unique_ptr<Event> filled;
        std::unique_ptr<Event> free;
        std::optional<expert_cache::ExpertKey> ahead;  ///< an expert that nobody has asked for yet
    };
    std::size_t fill_next(const expert_cache::HostExpert& expert);

    std::unique_ptr<Stream> stream_;
    std::unique_ptr<Event> settled_;
    std::vector<Buffer> buffers_;
    std::size_t next_ = 0;
    std::size_t last_ = 0;  ///< brought
    std::size_t ahead_ = 0;
};

}  // namespace coterie::engine
