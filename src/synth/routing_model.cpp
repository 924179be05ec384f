#include "synth/routing_model.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "synth/portable_math.h"

namespace coterie::synth {
namespace {

/// The k-th largest of `values`, which are reordered.
float kth_largest(std::span<float> values, std::int64_t k) {
    const auto kth = values.begin() + (k - 1);
    std::nth_element(values.begin(), kth, values.end(), std::greater<>());
    return *kth;
}

double log_odds(double share) { return natural_log(share / (1.0 - share)); }

/// Tokens with frozen noise, on which the shares of the experts are measured again and again.
class Simulation {
  public:
    static constexpr std::int64_t kTokens = 16384;  // the rarest expert of 128 at exponent 1.2: 130 choices

    explicit Simulation(const RoutingOptions& options)
        : options_(options),
          noise_(static_cast<std::size_t>(kTokens * options.experts)),
          logits_(static_cast<std::size_t>(options.experts)),
          sorted_(logits_.size()) {
        SplitMix64 random(options.seed ^ 0x51e7u);
        for (float& value : noise_) value = bell_draw(random);
    }

    /// Times each expert is among the `used` largest; token i is of topic i mod topics.
    std::vector<std::int64_t> count(std::span<const float> fixed) {
        std::vector<std::int64_t> counts(logits_.size());
        for (std::int64_t token = 0; token < kTokens; ++token) {
            const float* noise = noise_.data() + token * options_.experts;
            const float* shift = fixed.data() + token % options_.topics * options_.experts;
            for (std::size_t e = 0; e < logits_.size(); ++e) logits_[e] = shift[e] + noise[e];
            sorted_ = logits_;
            const float least = kth_largest(sorted_, options_.used);
            for (std::size_t e = 0; e < logits_.size(); ++e) counts[e] += logits_[e] >= least;
        }
        return counts;
    }

  private:
    const RoutingOptions& options_;
    std::vector<float> noise_;
    std::vector<float> logits_;
    std::vector<float> sorted_;
};

}  // namespace

std::vector<double> power_law_popularity(std::int64_t experts, std::int64_t used, double skew) {
    std::vector<double> shares(static_cast<std::size_t>(experts));
    for (std::size_t r = 0; r < shares.size(); ++r) shares[r] = power(static_cast<double>(r + 1), -skew);
    // Cap the head one rank at a time; the tail shares what is left.
    for (std::size_t capped = 0; capped <= shares.size(); ++capped) {
        double tail = 0.0;
        for (std::size_t r = capped; r < shares.size(); ++r) tail += shares[r];
        const double left = static_cast<double>(used) - kHighestShare * static_cast<double>(capped);
        const double scale = tail > 0.0 ? left / tail : 0.0;
        if (capped < shares.size() && scale * shares[capped] > kHighestShare) continue;
        for (std::size_t r = 0; r < shares.size(); ++r) {
            shares[r] = r < capped ? kHighestShare : scale * shares[r];
        }
        break;
    }
    return shares;
}

RoutingModel::RoutingModel(const RoutingOptions& options)
    : options_(options), fixed_(static_cast<std::size_t>(options.topics * options.experts)) {
    COTERIE_CHECK(0 < options.used && options.used < options.experts && options.topics >= 1);
    if (options.topics > 1) {
        SplitMix64 random(options.seed ^ 0x70b1c5u);
        for (float& part : fixed_) part = static_cast<float>(options.topic_strength) * bell_draw(random);
    }
    if (options.topics > 1 || options.skew > 0.0) calibrate();
}

void RoutingModel::calibrate() {
    // The log-odds of a share grow about 1.7 times as fast as a bias in units of the noise: steps of 0.5
    // close in fast without swinging.
    constexpr double kStep = 0.5;
    constexpr int kRounds = 30;
    const std::vector<double> wanted = power_law_popularity(options_.experts, options_.used, options_.skew);
    Simulation simulation(options_);
    for (int round = 0; round < kRounds; ++round) {
        const std::vector<std::int64_t> counts = simulation.count(fixed_);
        for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
            const double share = (static_cast<double>(counts[rank]) + 0.5) / (Simulation::kTokens + 1.0);
            const auto change = static_cast<float>(kStep * (log_odds(wanted[rank]) - log_odds(share)));
            for (std::size_t i = rank; i < fixed_.size(); i += wanted.size()) fixed_[i] += change;
        }
    }
}

void RoutingModel::draw(SplitMix64& random, std::int64_t topic, std::span<float> logits,
                        std::span<std::int32_t> chosen) const {
    const auto experts = static_cast<std::size_t>(options_.experts);
    const std::span<float> values = logits.first(experts);
    const std::span<float> sorted = logits.subspan(experts, experts);
    for (std::size_t rank = 0; rank < experts; ++rank) {
        values[rank] = fixed_part(static_cast<std::int64_t>(rank), topic) + bell_draw(random);
    }
    std::copy(values.begin(), values.end(), sorted.begin());
    const float least = kth_largest(sorted, options_.used);
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < experts && count < chosen.size(); ++rank) {
        if (values[rank] >= least) chosen[count++] = static_cast<std::int32_t>(rank);
    }
}

}  // namespace coterie::synth
