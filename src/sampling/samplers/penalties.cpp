#include "base/error.h"
#include "sampling/samplers/samplers.h"

namespace coterie {

Penalties::Penalties(std::int64_t vocabulary, std::int64_t window, float repeat, float frequency,
                     float presence)
    : window_(window),
      repeat_(repeat),
      frequency_(frequency),
      presence_(presence),
      counts_(static_cast<std::size_t>(vocabulary)) {}

void Penalties::apply(Candidates& candidates, Random&) {
    candidates.change_logits([&](const Candidate& candidate) {
        const std::uint32_t count = counts_[static_cast<std::size_t>(candidate.id)];
        if (count == 0) return candidate.logit;
        const float repeated = candidate.logit > 0 ? candidate.logit / repeat_ : candidate.logit * repeat_;
        return repeated - static_cast<float>(count) * frequency_ - presence_;
    });
}

void Penalties::accept(std::int32_t token) {
    COTERIE_CHECK(token >= 0);
    if (window_ == 0) return;
    if (static_cast<std::size_t>(token) >= counts_.size())
        counts_.resize(static_cast<std::size_t>(token) + 1);
    ++counts_[static_cast<std::size_t>(token)];
    if (window_ < 0) return;
    if (static_cast<std::int64_t>(recent_.size()) < window_) {
        recent_.push_back(token);
        return;
    }
    --counts_[static_cast<std::size_t>(recent_[oldest_])];
    recent_[oldest_] = token;
    oldest_ = (oldest_ + 1) % recent_.size();
}

}  // namespace coterie
