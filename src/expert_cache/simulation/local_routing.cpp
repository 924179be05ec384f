#include "expert_cache/simulation/local_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace coterie::expert_cache {

LocalRouting::LocalRouting(const RoutingOptions& options)
    : options_(options),
      random_(options.seed),
      recency_(static_cast<std::size_t>(options.experts), 0.0),
      keys_(recency_.size()),
      order_(recency_.size()) {
    for (std::int32_t rank = 1; rank <= options.experts; ++rank) {
        popularity_.push_back(std::pow(rank, -options.skew));
    }
    for (std::int32_t i = options.experts; i > 1; --i) {
        std::swap(popularity_[static_cast<std::size_t>(i - 1)],
                  popularity_[static_cast<std::size_t>(below(i))]);
    }
}

std::int32_t LocalRouting::below(std::int32_t count) {
    return static_cast<std::int32_t>(random_.next() % static_cast<std::uint64_t>(count));
}

void LocalRouting::drift() {
    for (std::int32_t i = 0; i < options_.experts / 8; ++i) {
        std::swap(popularity_[static_cast<std::size_t>(below(options_.experts))],
                  popularity_[static_cast<std::size_t>(below(options_.experts))]);
    }
}

// Drawing without replacement: the smallest of exponential variables whose rates are the weights.
std::span<const std::int32_t> LocalRouting::next() {
    if (++tokens_ % options_.topic_tokens == 0) drift();
    const double fade = std::exp(-1 / options_.memory_tokens);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        recency_[i] *= fade;
        const double weight = popularity_[i] + options_.repetition * recency_[i] / options_.memory_tokens;
        keys_[i] = -std::log1p(-static_cast<double>(random_.next_float())) / weight;
    }
    std::iota(order_.begin(), order_.end(), 0);
    const auto chosen = order_.begin() + options_.used;
    std::nth_element(order_.begin(), chosen, order_.end(), [&](std::int32_t a, std::int32_t b) {
        return keys_[static_cast<std::size_t>(a)] < keys_[static_cast<std::size_t>(b)];
    });
    std::sort(order_.begin(), chosen);
    for (auto expert = order_.begin(); expert != chosen; ++expert)
        ++recency_[static_cast<std::size_t>(*expert)];
    return {order_.data(), static_cast<std::size_t>(options_.used)};
}

}  // namespace coterie::expert_cache
