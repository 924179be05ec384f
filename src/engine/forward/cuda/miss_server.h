#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/forward/cuda/host_mailbox.h"
#include "engine/forward/cuda/link_path.h"
#include "engine/forward/cuda/resident_table.h"
#include "engine/forward/device_forward.h"
#include "engine/forward/expert_pass.h"
#include "expert_cache/expert_cache.h"

namespace coterie::engine {

/// The host's part of a step: computes the experts that the device asks for, layer by layer, until the step
/// is done.
class MissServer {
  public:
    MissServer(const WeightList& list, const HostMailbox& mailbox, const ResidentTable& residents,
               const LinkPath& link, ExpertPass& pass, std::int64_t max_tokens, std::int64_t width);

    /// Computes what the device asks for at this moment, if anything. True once it has finished step `number`
    /// of `tokens` rows. Throws Internal where an answer came too late. To be called without a pause, with
    /// the pool awake.
    bool serve(std::uint64_t number, std::int64_t tokens, expert_cache::ExpertCache* cache,
               DeviceCounts& counts);
    /// Times `count` experts of a layer from `first` on, one after the other, for one token; of one, on a
    /// machine that does nothing else.
    double seconds_per_expert(int layer, std::int64_t first, std::int64_t count);
    /// Lets a device that waits go on, with wrong results, so that it can be drained; then `recover`.
    void release();
    void recover();

  private:
    void answer(int layer, std::int64_t tokens, expert_cache::ExpertCache* cache, DeviceCounts& counts);
    void plan(int layer, std::int64_t tokens);
    void mark_handed(int layer, std::span<const std::int32_t> experts, std::span<const std::uint64_t> slots,
                     std::int64_t tokens);
    bool handed(std::int64_t pair) const { return handed_[static_cast<std::size_t>(pair)] != 0; }

    const WeightList& list_;
    const HostMailbox& mailbox_;
    const ResidentTable& residents_;
    const LinkPath& link_;
    ExpertPass& pass_;
    const std::int64_t max_tokens_;
    const std::int64_t width_;
    std::uint64_t answered_ = 0;  ///< epoch
    ExpertPlan plan_;
    std::vector<ActivationRow> inputs_;
    std::vector<std::int64_t> counts_;  ///< [experts + 1]
    std::vector<std::uint8_t> handed_;  ///< [pairs]
};

}  // namespace coterie::engine
