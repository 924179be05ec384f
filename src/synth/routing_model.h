#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/split_mix.h"

namespace coterie::synth {

/// What makes a router's choices.
struct RoutingOptions {
    std::int64_t experts;
    std::int64_t used;
    double skew;            ///< exponent of the power law of popularity; 0: all experts alike
    std::int64_t topics;    ///< groups of tokens that share experts; 1: none
    double topic_strength;  ///< of a topic's part of a logit, against the token's own part of 1
    std::uint64_t seed;
};

/// How often each expert, from the most to the least popular, is among the `used` of a token: proportional to
/// rank^-skew, summing to `used`, and nowhere above `kHighestShare` (what the cap takes goes to the others).
std::vector<double> power_law_popularity(std::int64_t experts, std::int64_t used, double skew);
inline constexpr double kHighestShare = 0.995;

/// The routing of a synthetic layer in numbers: the logit of the expert of popularity rank r for a token of
/// topic t is
///
///     bias(r) + topic_part(r, t) + a bell-shaped part of variance 1 that is the token's own,
///
/// and the `used` largest are chosen. The biases are found by simulation such that each expert is chosen as
/// often as the power law says. Weights that give a real router these logits are made in router.h.
class RoutingModel {
  public:
    explicit RoutingModel(const RoutingOptions& options);

    const RoutingOptions& options() const { return options_; }

    /// The part of the logit that is the same for all tokens of a topic.
    float fixed_part(std::int64_t rank, std::int64_t topic) const {
        return fixed_[static_cast<std::size_t>(topic * options_.experts + rank)];
    }

    /// Draws the choices of one token of a topic: popularity ranks, unordered. `logits` is scratch of
    /// 2 * experts, `chosen` has `used` elements.
    void draw(SplitMix64& random, std::int64_t topic, std::span<float> logits,
              std::span<std::int32_t> chosen) const;

  private:
    void calibrate();

    RoutingOptions options_;
    std::vector<float> fixed_;  ///< [topic][rank]
};

}  // namespace coterie::synth
