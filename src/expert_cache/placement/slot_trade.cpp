#include "expert_cache/placement/slot_trade.h"

#include "expert_cache/placement/token_time.h"
#include "expert_cache/planner/step_problem.h"

namespace coterie::expert_cache {
namespace {

constexpr double kLeastTradeGain = 0.01;

}  // namespace

SlotTrade::SlotTrade(const ModelFacts& model, UsageCounts usage, const Costs& costs, std::int32_t spare_slots)
    : model_(model), usage_(std::move(usage)), curves_(model, &usage_), spare_slots_(spare_slots) {
    for (const LayerFacts& layer : model.layers) {
        saved_seconds_.push_back(layer.experts == 0 ? 0 : saved_seconds(layer, costs));
    }
}

/// Of a token, the part that more hits would save.
double SlotTrade::miss_seconds(const SlotCounts& slots) const {
    double seconds = 0;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
        const LayerFacts& layer = model_.layers[i];
        if (layer.experts == 0) continue;
        const std::int32_t residents = residents_of_layer(slots, i, layer.experts, spare_slots_);
        seconds += layer.experts_used * (1 - curves_.hit_rate(i, residents)) * saved_seconds_[i];
    }
    return seconds;
}

std::optional<SlotCounts> SlotTrade::better() const {
    std::vector<std::uint64_t> bytes;
    for (const std::vector<std::int32_t>& device : now_) {
        std::uint64_t& sum = bytes.emplace_back(0);
        for (std::size_t i = 0; i < device.size(); ++i) {
            sum += model_.layers[i].expert_bytes * static_cast<std::uint64_t>(device[i]);
        }
    }
    std::vector<std::int32_t> limits;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
        limits.push_back(slots_of_layer(now_, i) > 0 ? model_.layers[i].experts : 0);
    }
    const std::vector<std::int32_t> owner(model_.layers.size(), kNoDevice);
    SlotCounts shares = share_by_profile({model_, bytes, owner, limits}, curves_, saved_seconds_);
    if (miss_seconds(shares) > (1 - kLeastTradeGain) * miss_seconds(now_)) return std::nullopt;
    return shares;
}

}  // namespace coterie::expert_cache
