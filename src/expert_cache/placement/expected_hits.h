#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "expert_cache/placement/facts.h"

namespace coterie::expert_cache {

/// The share of a layer's uses of experts that its n most used experts serve, for all layers and n: what a
/// cache that keeps the right ones may expect to hit.
class HitCurves {
  public:
    /// From a profile, or from none (null): uses are then assumed to fall as 1 / rank, which is between what
    /// is measured on models with even and with uneven routing. Layers that the profile never saw in use are
    /// assumed the same. Requires: a profile of the model's layers and experts.
    HitCurves(const ModelFacts& model, const UsageCounts* usage);

    /// In [0, 1]; all experts: 1. A layer without experts: 0.
    double hit_rate(std::size_t layer, std::int64_t residents) const;
    /// What one more resident adds.
    double gain(std::size_t layer, std::int64_t residents) const {
        return hit_rate(layer, residents + 1) - hit_rate(layer, residents);
    }

  private:
    std::vector<std::vector<double>> served_;  ///< [layers][experts + 1]
};

}  // namespace coterie::expert_cache
