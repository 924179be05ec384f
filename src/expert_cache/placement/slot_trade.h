#pragma once

#include <optional>
#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/facts.h"
#include "expert_cache/placement/slot_shares.h"

namespace coterie::expert_cache {

/// Slots that layers trade with each other when their use has changed: each device keeps its bytes, and a
/// layer that had none gets none.
class SlotTrade {
  public:
    /// `model` and `costs` must outlive it. Requires: counts of the model's layers and experts.
    SlotTrade(const ModelFacts& model, UsageCounts usage, const Costs& costs, std::int32_t spare_slots);

    /// `slots`: [layers] that a device has now.
    void add_device(std::vector<std::int32_t> slots) { now_.push_back(std::move(slots)); }

    /// The shares that the use asks for; nothing where they would save less than a hundredth of the time that
    /// misses cost now, so that experts are not moved about for noise.
    std::optional<SlotCounts> better() const;

  private:
    double miss_seconds(const SlotCounts& slots) const;

    const ModelFacts& model_;
    const UsageCounts usage_;
    const HitCurves curves_;
    std::vector<double> saved_seconds_;  ///< [layers], by a hit instead of a miss
    const std::int32_t spare_slots_;
    SlotCounts now_;
};

}  // namespace coterie::expert_cache
