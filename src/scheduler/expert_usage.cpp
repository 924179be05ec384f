#include "scheduler/expert_usage.h"

#include "engine/forward/device_forward.h"
#include "engine/offload.h"

namespace coterie::scheduler {
namespace {

/// One writer: a plain addition that others may read.
void increment(std::atomic<std::uint64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

const expert_cache::ExpertCache* cache_of(engine::Engine& engine) {
    if (engine.device()) return engine.device()->cache();
    return engine.offload() ? &engine.offload()->cache() : nullptr;
}

}  // namespace

ExpertUsage::ExpertUsage(engine::Engine& engine)
    : cache_(cache_of(engine)),
      layers_(static_cast<int>(engine.config().layers)),
      experts_(static_cast<int>(engine.config().experts)) {
    const auto count = static_cast<std::size_t>(layers_) * static_cast<std::size_t>(experts_);
    uses_ = std::make_unique<std::atomic<std::uint64_t>[]>(count);
    misses_ = std::make_unique<std::atomic<std::uint64_t>[]>(count);
}

void ExpertUsage::count(int layer, std::span<const std::int32_t> experts) {
    for (const std::int32_t expert : experts) {
        const std::size_t i = index(layer, expert);
        increment(uses_[i]);
        if (cache_ && !cache_->find({layer, expert})) increment(misses_[i]);
    }
}

std::vector<std::uint64_t> ExpertUsage::read(const Counts& counts, int layer) const {
    std::vector<std::uint64_t> values(static_cast<std::size_t>(experts_));
    for (std::int32_t expert = 0; expert < experts_; ++expert) {
        values[static_cast<std::size_t>(expert)] =
            counts[index(layer, expert)].load(std::memory_order_relaxed);
    }
    return values;
}

}  // namespace coterie::scheduler
