#include <algorithm>

#include "base/error.h"
#include "engine/forward/hybrid/hybrid_experts.h"

// A prompt's part of the hybrid step: memory that the coldest slots lend, and experts that stream through it.

namespace coterie::engine {
namespace {

/// The part of a device's slots that a prompt's ring may take beyond the least it needs. What is evicted for
/// it streams once a window; what runs ahead is saved in every layer.
constexpr std::uint64_t kRingShare = 8;
/// No more runs ahead than the link moves in this time: what is not needed after all delays what is.
constexpr double kRingSeconds = 0.25;

}  // namespace

using expert_cache::ExpertKey;

/// A device that cannot lend what the prompt needs sits this step out.
void HybridExperts::lend_memory(DeviceWork& work, std::int32_t device, const DeviceLimits& limits) {
    const std::uint64_t workspace = work.experts->workspace_bytes(limits);
    const std::uint64_t largest = parts_.catalog.largest_expert();
    const std::uint64_t aligned = (workspace + 255) / 256 * 256;
    try {
        const std::int64_t buffers = ring_buffers(device);
        auto loan = parts_.cache.borrow(device, aligned + PromptRing::bytes(largest, buffers));
        work.serves = loan.has_value();
        if (!loan) return;
        work.loan.emplace(std::move(*loan));
        work.ring.emplace(work.experts->device(), work.loan->address() + aligned, largest, buffers);
    } catch (const Error& error) {
        sit_out(work, error.what());
    }
}

/// As many as an eighth of the slots' memory has room for and the link fills soon, at most one for each
/// expert of a layer.
std::int64_t HybridExperts::ring_buffers(std::int32_t device) const {
    std::uint64_t slots = 0;
    std::int64_t most = PromptRing::kLeastBuffers;
    for (int layer = 0; layer < parts_.catalog.layers(); ++layer) {
        const expert_cache::LayerShape& shape = parts_.catalog.shapes()[static_cast<std::size_t>(layer)];
        slots += static_cast<std::uint64_t>(parts_.cache.slots(device, layer)) * shape.expert_bytes;
        most = std::max<std::int64_t>(most, shape.experts);
    }
    const std::uint64_t one = PromptRing::bytes(parts_.catalog.largest_expert(), 1);
    const double link = parts_.costs.devices[static_cast<std::size_t>(device)].link_bytes_per_second;
    const double soon = std::min(kRingSeconds * link / static_cast<double>(one), static_cast<double>(most));
    const auto buffers = std::min<std::int64_t>(static_cast<std::int64_t>(slots / kRingShare / one),
                                                static_cast<std::int64_t>(soon));
    return std::max(buffers, PromptRing::kLeastBuffers);
}

/// Begins to copy what the next layer with experts will probably need and no device holds.
void HybridExperts::run_ahead(int layer) {
    while (layer < parts_.catalog.layers() && parts_.catalog.layer(layer) == nullptr) ++layer;
    if (!prompt_ || layer >= parts_.catalog.layers()) return;
    for (const std::int32_t expert : guess_.likely(layer)) {
        if (parts_.cache.find({layer, expert})) continue;
        DeviceWork* work = roomiest_ring();
        if (work == nullptr) return;
        try {
            work->ring->run_ahead({layer, expert}, parts_.cache.bytes_of({layer, expert}));
        } catch (const Error& error) {
            sit_out(*work, error.what());
        }
    }
}

HybridExperts::DeviceWork* HybridExperts::roomiest_ring() {
    DeviceWork* best = nullptr;
    for (DeviceWork& work : devices_) {
        if (!work.serves || !work.ring || work.ring->room_ahead() <= 0) continue;
        if (best == nullptr || work.ring->room_ahead() > best->ring->room_ahead()) best = &work;
    }
    return best;
}

/// What ran ahead for nothing gives its buffers up, before the step lets go of what it reads. Only experts
/// whose places in RAM may go to others then are waited for.
void HybridExperts::forget_ahead() {
    if (parts_.cache.exclusive()) return settle_rings();
    for (DeviceWork& work : devices_) {
        if (work.ring) work.ring->forget_ahead();
    }
}

void HybridExperts::settle_rings() {
    for (DeviceWork& work : devices_) {
        if (!work.ring || work.gone) continue;
        const EventState state = work.ring->settle(kDeviceWatchdog);
        if (state == EventState::Pending) give_up(work, "it does not answer");
        if (state == EventState::Failed && work.experts->device().lost()) give_up(work, "it is lost");
    }
}

DeviceAddress HybridExperts::bring(DeviceWork& work, ExpertKey key) {
    const std::uint64_t bytes = parts_.catalog.layout(key.layer).bytes;
    if (work.ring->is_ahead(key)) statistics_.ran_ahead.add(bytes);
    statistics_.streamed.add(bytes);
    work.from_ring = true;
    return work.ring->bring(key, parts_.cache.bytes_of(key), work.experts->stream());
}

}  // namespace coterie::engine
