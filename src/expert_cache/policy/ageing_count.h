#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace coterie::expert_cache {

/// How often each expert was used, where a use counts half as much after `half_life` tokens, a quarter after
/// two of them, and so on.
///
/// Old uses are never touched: instead of shrinking them, the weight of a new use grows by 2^(1/half_life) a
/// token, and everything is scaled back long before it overflows. So a use costs one addition, and counts
/// compare as they stand.
class AgeingCount {
  public:
    AgeingCount(std::int32_t experts, double half_life)
        : half_life_(half_life),
          growth_(std::exp2(1.0 / half_life)),
          counts_(static_cast<std::size_t>(experts)) {}

    void add(std::int32_t expert, std::int64_t token) {
        if (token != token_) advance(token);
        counts_[static_cast<std::size_t>(expert)] += weight_;
    }

    /// Makes `uses` uses of now all that is known of the expert.
    void set(std::int32_t expert, double uses) { counts_[static_cast<std::size_t>(expert)] = uses * weight_; }

    /// Comparable between experts at one time, and with nothing else.
    double relative(std::int32_t expert) const { return counts_[static_cast<std::size_t>(expert)]; }

    /// Of a use now, in the same numbers. Falls only when all of them are scaled back.
    double weight() const { return weight_; }

    /// In uses, as of `token`.
    double uses(std::int32_t expert, std::int64_t token) const {
        const double age = static_cast<double>(token - token_) / half_life_;
        return relative(expert) / weight_ * std::exp2(-age);
    }

  private:
    void advance(std::int64_t token) {
        constexpr double kLargestWeight = 0x1p400;
        const std::int64_t passed = token - token_;
        weight_ *= passed == 1 ? growth_ : std::exp2(static_cast<double>(passed) / half_life_);
        token_ = token;
        if (weight_ > kLargestWeight) rescale();
    }
    void rescale() {
        const double scale = 1.0 / weight_;  // 0 after a pause in which everything was forgotten
        for (double& count : counts_) count *= scale;
        weight_ = 1.0;
    }

    double half_life_;  ///< in tokens
    double growth_;     ///< of the weight, per token
    std::vector<double> counts_;
    double weight_ = 1.0;  ///< of a use at token_
    std::int64_t token_ = 0;
};

}  // namespace coterie::expert_cache
