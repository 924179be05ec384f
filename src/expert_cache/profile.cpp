#include "expert_cache/profile.h"

#include <algorithm>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

constexpr double kHalfLifeTokens = 32768.0;
constexpr auto kSaveInterval = std::chrono::minutes(10);

}  // namespace

RoutingProfile::RoutingProfile(const ProfileShape& shape) : shape_(shape) {
    COTERIE_CHECK(shape.layers > 0 && shape.experts > 0);
    counts_.assign(static_cast<std::size_t>(shape.layers), AgeingCount(shape.experts, kHalfLifeTokens));
}

void RoutingProfile::used(ExpertKey key, std::int64_t token) {
    counts_[static_cast<std::size_t>(key.layer)].add(key.expert, token);
    token_ = std::max(token_, token);
    counted_ = true;
}

void RoutingProfile::set(ExpertKey key, double uses) {
    counts_[static_cast<std::size_t>(key.layer)].set(key.expert, uses);
}

std::vector<float> RoutingProfile::uses(std::int32_t layer) const {
    const AgeingCount& counts = counts_[static_cast<std::size_t>(layer)];
    std::vector<float> result;
    result.reserve(static_cast<std::size_t>(shape_.experts));
    for (std::int32_t expert = 0; expert < shape_.experts; ++expert) {
        result.push_back(static_cast<float>(counts.uses(expert, token_)));
    }
    return result;
}

bool RoutingProfile::should_save(Clock::time_point now) {
    if (!last_save_) last_save_ = now;
    if (!counted_ || now - *last_save_ < kSaveInterval) return false;
    last_save_ = now;
    counted_ = false;
    return true;
}

}  // namespace coterie::expert_cache
