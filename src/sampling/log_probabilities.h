#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coterie {

struct TokenLogProbability {
    std::int32_t id;
    double log_probability;
};

/// The log-probabilities that the model itself gives, before temperature and samplers: log softmax of the
/// logits, computed in double. Over the whole vocabulary exp of them adds up to 1.
class LogProbabilities {
  public:
    /// Borrows the logits, of which at least one is finite and none is NaN.
    explicit LogProbabilities(std::span<const float> logits);

    double operator[](std::int32_t token) const {
        return logits_[static_cast<std::size_t>(token)] - log_sum_;
    }
    /// The n most probable tokens, best first, equal ones by id; all of them where there are fewer.
    std::vector<TokenLogProbability> top(std::int64_t n) const;

  private:
    std::span<const float> logits_;
    double log_sum_;
};

}  // namespace coterie
