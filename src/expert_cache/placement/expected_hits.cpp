#include "expert_cache/placement/expected_hits.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

/// Weights of a power law with exponent 1, most used first.
std::vector<double> assumed_uses(std::int32_t experts) {
    std::vector<double> uses;
    for (std::int32_t rank = 1; rank <= experts; ++rank) uses.push_back(1.0 / rank);
    return uses;
}

std::vector<double> sorted_uses(const LayerFacts& layer, const UsageCounts* usage, std::size_t index) {
    if (!usage) return assumed_uses(layer.experts);
    std::vector<double> uses = usage->at(index);
    COTERIE_CHECK(uses.size() == static_cast<std::size_t>(layer.experts));
    if (std::accumulate(uses.begin(), uses.end(), 0.0) <= 0) return assumed_uses(layer.experts);
    std::sort(uses.begin(), uses.end(), std::greater<>());
    return uses;
}

/// Prefix sums as shares of the whole.
std::vector<double> served_by_first(const std::vector<double>& uses) {
    const double all = std::accumulate(uses.begin(), uses.end(), 0.0);
    std::vector<double> served{0};
    double sum = 0;
    for (const double use : uses) served.push_back((sum += use) / all);
    return served;
}

}  // namespace

HitCurves::HitCurves(const ModelFacts& model, const UsageCounts* usage) {
    COTERIE_CHECK(!usage || usage->size() == model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        served_.push_back(served_by_first(sorted_uses(model.layers[i], usage, i)));
    }
}

double HitCurves::hit_rate(std::size_t layer, std::int64_t residents) const {
    const std::vector<double>& served = served_[layer];
    const auto last = static_cast<std::int64_t>(served.size()) - 1;
    return served[static_cast<std::size_t>(std::clamp<std::int64_t>(residents, 0, last))];
}

}  // namespace coterie::expert_cache
