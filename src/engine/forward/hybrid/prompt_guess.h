#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "expert_cache/slots/layer_shape.h"

namespace coterie::engine {

/// Which experts of a layer a prompt will probably need: those that the last windows' tokens chose there most
/// often. A window of some hundred tokens uses nearly all, so the order matters more than the choice.
class PromptGuess {
  public:
    explicit PromptGuess(std::span<const expert_cache::LayerShape> layers) {
        for (const auto& layer : layers) uses_.emplace_back(static_cast<std::size_t>(layer.experts));
    }

    /// `chosen`: by all tokens of a window. Windows before it count half.
    void learn(int layer, std::span<const std::int32_t> chosen) {
        auto& uses = uses_[static_cast<std::size_t>(layer)];
        for (std::uint32_t& count : uses) count /= 2;
        for (const std::int32_t expert : chosen) uses[static_cast<std::size_t>(expert)] += 2;
    }

    /// All experts of a layer, the likeliest first; without those never seen where any was. Until the next
    /// call.
    std::span<const std::int32_t> likely(int layer) {
        const auto& uses = uses_[static_cast<std::size_t>(layer)];
        const auto count = [&](std::int32_t expert) { return uses[static_cast<std::size_t>(expert)]; };
        order_.resize(uses.size());
        std::iota(order_.begin(), order_.end(), 0);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::int32_t a, std::int32_t b) { return count(a) > count(b); });
        const auto seen =
            std::find_if(order_.begin(), order_.end(), [&](std::int32_t e) { return count(e) == 0; });
        if (seen == order_.begin()) return order_;
        return std::span(order_).first(static_cast<std::size_t>(seen - order_.begin()));
    }

  private:
    std::vector<std::vector<std::uint32_t>> uses_;  ///< [layers][experts], doubled
    std::vector<std::int32_t> order_;
};

}  // namespace coterie::engine
