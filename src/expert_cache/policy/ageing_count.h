#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace coterie::expert_cache {

/// What a use weighs where it counts half as much after `half_life` tokens, a quarter after two of them, and
/// so on.
///
/// Old uses are never touched: instead of shrinking them, the weight of a new use grows by 2^(1/half_life) a
/// token, and everything is scaled back long before it overflows. So a use costs one addition, and counts
/// compare as they stand.
class AgeingWeight {
  public:
    explicit AgeingWeight(double half_life) : half_life_(half_life), growth_(std::exp2(1.0 / half_life)) {}

    /// Calls `scale(factor)` where all counts are to be multiplied by it.
    template <typename Scale>
    void advance(std::int64_t token, Scale scale) {
        if (token == token_) return;
        const std::int64_t passed = token - token_;
        weight_ *= passed == 1 ? growth_ : std::exp2(static_cast<double>(passed) / half_life_);
        token_ = token;
        constexpr double kLargestWeight = 0x1p400;
        if (weight_ <= kLargestWeight) return;
        scale(1.0 / weight_);  // 0 after a pause in which everything was forgotten
        weight_ = 1.0;
    }

    /// Of a use now. Falls only when all counts are scaled back.
    double now() const { return weight_; }
    /// A count in uses, as of `token`.
    double uses(double count, std::int64_t token) const {
        const double then = count / weight_;
        return token == token_ ? then : then * std::exp2(-static_cast<double>(token - token_) / half_life_);
    }

  private:
    double half_life_;  ///< in tokens
    double growth_;     ///< of the weight, per token
    double weight_ = 1.0;
    std::int64_t token_ = 0;
};

/// How often each expert was used.
class AgeingCount {
  public:
    AgeingCount(std::int32_t experts, double half_life)
        : weight_(half_life), counts_(static_cast<std::size_t>(experts)) {}

    void add(std::int32_t expert, std::int64_t token) {
        weight_.advance(token, [&](double factor) {
            for (double& count : counts_) count *= factor;
        });
        counts_[static_cast<std::size_t>(expert)] += weight_.now();
    }

    /// Makes `uses` uses of now all that is known of the expert.
    void set(std::int32_t expert, double uses) {
        counts_[static_cast<std::size_t>(expert)] = uses * weight_.now();
    }

    /// Comparable between experts at one time, and with nothing else.
    double relative(std::int32_t expert) const { return counts_[static_cast<std::size_t>(expert)]; }
    /// In uses, as of `token`.
    double uses(std::int32_t expert, std::int64_t token) const {
        return weight_.uses(relative(expert), token);
    }

  private:
    AgeingWeight weight_;
    std::vector<double> counts_;
};

}  // namespace coterie::expert_cache
