#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/split_mix.h"

namespace coterie::expert_cache {

/// What a made-up router is like.
struct RoutingOptions {
    std::int32_t experts = 128;
    std::int32_t used = 8;
    double skew = 1.0;                ///< exponent of the power law of popularity
    double repetition = 4.0;          ///< weight of having been used lately, against a popularity of 1
    double memory_tokens = 16.0;      ///< over which that fades to 1 / e
    std::int64_t topic_tokens = 256;  ///< after so many tokens a quarter of the experts trade popularity
    std::uint64_t seed = 1;
};

/// The choices of one layer's router, token after token, with the locality of real ones: some experts are
/// popular, those used lately come again, and what is popular drifts.
class LocalRouting {
  public:
    explicit LocalRouting(const RoutingOptions& options);

    /// The next token's experts, all different, in ascending order; valid until the next call.
    std::span<const std::int32_t> next();

  private:
    void drift();
    std::int32_t below(std::int32_t count);

    RoutingOptions options_;
    SplitMix64 random_;
    std::vector<double> popularity_;  ///< [experts]; the largest is 1
    std::vector<double> recency_;     ///< [experts]
    std::vector<double> keys_;
    std::vector<std::int32_t> order_;
    std::int64_t tokens_ = 0;
};

}  // namespace coterie::expert_cache
