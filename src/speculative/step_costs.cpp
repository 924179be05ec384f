#include "speculative/step_costs.h"

#include <algorithm>

namespace coterie::speculative {
namespace {

constexpr double kForgets = 0.99;        ///< what a step's weight is multiplied by with each later step
constexpr double kLeastVariance = 0.02;  ///< of the tokens, for a slope to be read off

}  // namespace

/// Weighted means and moments about them, updated one by one: West, "Updating mean and variance estimates"
/// (1979).
void StepCosts::observe(std::int64_t tokens, double seconds) {
    const auto x = static_cast<double>(tokens);
    weight_ = kForgets * weight_ + 1.0;
    const double share = 1.0 / weight_;
    const double dx = x - mean_tokens_;
    const double dy = seconds - mean_seconds_;
    mean_tokens_ += share * dx;
    mean_seconds_ += share * dy;
    variance_ = (1.0 - share) * (variance_ + share * dx * dx);
    covariance_ = (1.0 - share) * (covariance_ + share * dx * dy);
    if (variance_ > kLeastVariance) slope_ = std::max(covariance_ / variance_, 0.0);
}

double StepCosts::seconds(std::int64_t tokens) const {
    const double there = mean_seconds_ + slope_ * (static_cast<double>(tokens) - mean_tokens_);
    return std::max(there, slope_ * static_cast<double>(tokens));
}

StepBudget::StepBudget(const StepCosts& costs, std::int64_t tokens)
    : seconds_(costs.seconds(tokens)),
      expected_(static_cast<double>(tokens)),
      seconds_per_token_(costs.seconds_per_token()) {}

bool StepBudget::take(double probability) {
    if (probability * seconds_ < seconds_per_token_ * expected_) return false;
    seconds_ += seconds_per_token_;
    expected_ += probability;
    return true;
}

}  // namespace coterie::speculative
