#pragma once

#include <cstdint>

namespace coterie::speculative {

/// What a step of a few tokens takes, as seconds = fixed + per_token * tokens: a straight line through the
/// steps seen lately, by least squares, older ones counting less and less. The experts that a further token
/// adds and the weights that it shares with its neighbours are all in the slope.
class StepCosts {
  public:
    void observe(std::int64_t tokens, double seconds);

    /// Of a step of so many tokens; 0 as long as none was seen.
    double seconds(std::int64_t tokens) const;
    /// Of one token more; 0 as long as all steps had as many tokens, so that others are tried.
    double seconds_per_token() const { return slope_; }

  private:
    double weight_ = 0.0;
    double mean_tokens_ = 0.0;
    double mean_seconds_ = 0.0;
    double variance_ = 0.0;    ///< of the tokens
    double covariance_ = 0.0;  ///< of tokens and seconds
    double slope_ = 0.0;
};

/// Decides which drafted tokens join a step: each that raises the tokens expected of a second.
class StepBudget {
  public:
    /// A step that computes `tokens` anyway, each of which gives one token of a text.
    StepBudget(const StepCosts& costs, std::int64_t tokens);

    /// Takes one more that comes true with this probability, or says that it would not pay.
    bool take(double probability);

  private:
    double seconds_;
    double expected_;
    double seconds_per_token_;
};

}  // namespace coterie::speculative
