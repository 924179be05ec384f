#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace coterie::scheduler {

/// How often each expert was used, and how often it was in no cache when it was: counted by the thread that
/// runs steps, read by any.
class ExpertUsage {
  public:
    explicit ExpertUsage(engine::Engine& engine);

    void count(int layer, std::span<const std::int32_t> experts);

    /// Of the devices; null where the CPU computes all.
    const expert_cache::ExpertCache* cache() const { return cache_; }
    int layers() const { return layers_; }
    int experts() const { return experts_; }
    /// [experts] since the start.
    std::vector<std::uint64_t> uses(int layer) const { return read(uses_, layer); }
    std::vector<std::uint64_t> misses(int layer) const { return read(misses_, layer); }

  private:
    using Counts = std::unique_ptr<std::atomic<std::uint64_t>[]>;
    std::vector<std::uint64_t> read(const Counts& counts, int layer) const;
    std::size_t index(int layer, std::int32_t expert) const {
        return static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts_) +
               static_cast<std::size_t>(expert);
    }

    const expert_cache::ExpertCache* cache_;
    int layers_;
    int experts_;
    Counts uses_;
    Counts misses_;
};

}  // namespace coterie::scheduler
