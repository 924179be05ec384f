#include "sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace coterie {

LogProbabilities::LogProbabilities(std::span<const float> logits) : logits_(logits) {
    const double highest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - highest);
    log_sum_ = highest + std::log(sum);
}

std::vector<TokenLogProbability> LogProbabilities::top(std::int64_t n) const {
    std::vector<std::int32_t> ids(logits_.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto logit = [&](std::int32_t id) { return logits_[static_cast<std::size_t>(id)]; };
    const auto before = [&](std::int32_t a, std::int32_t b) {
        return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
    };
    const auto count = std::clamp<std::int64_t>(n, 0, static_cast<std::int64_t>(ids.size()));
    std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), before);
    std::vector<TokenLogProbability> top;
    for (const std::int32_t id : std::span(ids).first(static_cast<std::size_t>(count)))
        top.push_back({id, (*this)[id]});
    return top;
}

}  // namespace coterie
