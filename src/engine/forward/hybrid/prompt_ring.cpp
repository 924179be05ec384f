#include "engine/forward/hybrid/prompt_ring.h"

namespace coterie::engine {

PromptRing::PromptRing(Device& device, DeviceAddress memory, std::uint64_t largest_expert)
    : stream_(device.create_stream()) {
    for (std::int64_t i = 0; i < kBuffers; ++i) {
        buffers_.push_back({memory + static_cast<std::uint64_t>(i) * buffer_bytes(largest_expert),
                            device.create_event(), device.create_event()});
    }
}

DeviceAddress PromptRing::copy(const expert_cache::HostExpert& expert, Stream& compute) {
    const Buffer& buffer = buffers_[next_];
    stream_->wait_for(*buffer.free);
    DeviceAddress at = buffer.address;
    for (const std::span<const std::byte> piece : expert.pieces) {
        stream_->copy_to_device(at, piece);
        at = at + piece.size();
    }
    stream_->record(*buffer.filled);
    compute.wait_for(*buffer.filled);
    return buffer.address;
}

void PromptRing::consumed(Stream& compute) {
    compute.record(*buffers_[next_].free);
    next_ = (next_ + 1) % buffers_.size();
}

}  // namespace coterie::engine
