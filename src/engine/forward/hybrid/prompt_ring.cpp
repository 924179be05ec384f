#include "engine/forward/hybrid/prompt_ring.h"

#include <algorithm>

#include "base/error.h"

namespace coterie::engine {

using expert_cache::ExpertKey;
using expert_cache::HostExpert;

PromptRing::PromptRing(Device& device, DeviceAddress memory, std::uint64_t largest_expert,
                       std::int64_t buffers)
    : stream_(device.create_stream()), settled_(device.create_event()) {
    for (std::int64_t i = 0; i < buffers; ++i) {
        buffers_.push_back({memory + static_cast<std::uint64_t>(i) * buffer_bytes(largest_expert),
                            device.create_event(),
                            device.create_event(),
                            {}});
    }
}

/// Queues the copy into the next buffer that no expert waits in.
std::size_t PromptRing::fill_next(const HostExpert& expert) {
    while (buffers_[next_].ahead) next_ = (next_ + 1) % buffers_.size();
    const std::size_t filled = next_;
    const Buffer& buffer = buffers_[filled];
    stream_->wait_for(*buffer.free);
    DeviceAddress at = buffer.address;
    for (const std::span<const std::byte> piece : expert.pieces) {
        if (!piece.empty()) stream_->copy_to_device(at, piece);
        at = at + piece.size();
    }
    stream_->record(*buffer.filled);
    next_ = (next_ + 1) % buffers_.size();
    return filled;
}

void PromptRing::run_ahead(ExpertKey key, const HostExpert& expert) {
    buffers_[fill_next(expert)].ahead = key;
    ++ahead_;
}

bool PromptRing::is_ahead(ExpertKey key) const {
    return ahead_ > 0 && std::any_of(buffers_.begin(), buffers_.end(),
                                     [&](const Buffer& buffer) { return buffer.ahead == key; });
}

DeviceAddress PromptRing::bring(ExpertKey key, const HostExpert& expert, Stream& compute) {
    const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                    [&](const Buffer& buffer) { return buffer.ahead == key; });
    if (found != buffers_.end()) {
        last_ = static_cast<std::size_t>(found - buffers_.begin());
        found->ahead.reset();
        --ahead_;
    } else {
        last_ = fill_next(expert);
    }
    compute.wait_for(*buffers_[last_].filled);
    return buffers_[last_].address;
}

void PromptRing::consumed(Stream& compute) { compute.record(*buffers_[last_].free); }

void PromptRing::forget_ahead() {
    if (ahead_ == 0) return;
    for (Buffer& buffer : buffers_) buffer.ahead.reset();
    ahead_ = 0;
}

EventState PromptRing::settle(std::chrono::nanoseconds limit) {
    forget_ahead();
    try {
        stream_->record(*settled_);
        const EventState state = settled_->wait(limit);
        if (state == EventState::Failed) stream_->synchronise();
        return state;
    } catch (const Error&) {  // what has failed; nothing of the stream is under way any more
        return EventState::Failed;
    }
}

}  // namespace coterie::engine
