#include <algorithm>
#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

/// Below it the draw is decided anyway, and quotients would leave the range of floats.
constexpr float kLowest = 1e-6f;

}  // namespace

void Temperature::apply(Candidates& candidates, Random&) {
    const float temperature = range_ > 0 ? dynamic_temperature(candidates) : temperature_;
    candidates.scale_logits(1.0f / std::max(temperature, kLowest));
}

float Temperature::dynamic_temperature(Candidates& candidates) const {
    const float low = std::max(temperature_ - range_, 0.0f);
    const float high = temperature_ + range_;
    if (candidates.size() < 2) return low;
    candidates.softmax();
    double entropy = 0;
    for (const Candidate& candidate : candidates.items()) {
        if (candidate.probability > 0) entropy -= candidate.probability * std::log(candidate.probability);
    }
    const double share = std::clamp(entropy / std::log(static_cast<double>(candidates.size())), 0.0, 1.0);
    return low + (high - low) * static_cast<float>(std::pow(share, static_cast<double>(exponent_)));
}

}  // namespace coterie
