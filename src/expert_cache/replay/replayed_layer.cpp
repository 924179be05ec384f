#include "expert_cache/replay/replayed_layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coterie::expert_cache {

ReplayedLayer::ReplayedLayer(std::unique_ptr<Policy> policy, std::int32_t experts, std::int32_t slots)
    : policy_(std::move(policy)), experts_(static_cast<std::size_t>(experts)), slots_(slots) {}

void ReplayedLayer::fill() {
    std::vector<std::int32_t> order(experts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return policy_->worth(a, 0) > policy_->worth(b, 0);
    });
    for (const std::int32_t expert : order) {
        if (full()) return;
        enter(expert, 0);
    }
}

bool ReplayedLayer::use(std::int32_t expert, std::int64_t token) {
    const bool hit = state(expert).resident;
    policy_->used(expert, token, hit);
    return hit;
}

bool ReplayedLayer::start_upload(std::int32_t expert, std::int64_t token) {
    if (state(expert).uploading || !policy_->admits(expert, token)) return false;
    if (full()) {
        if (candidates_.empty()) return false;
        const std::int32_t victim = policy_->victim(candidates_, expert, token);
        if (victim == kNone) return false;
        drop_candidate(victim);
        state(expert).victim = victim;
    }
    state(expert).uploading = true;
    ++uploads_;
    return true;
}

void ReplayedLayer::upload_landed(std::int32_t expert, std::int64_t token) {
    state(expert).uploading = false;
    --uploads_;
    const std::int32_t victim = std::exchange(state(expert).victim, kNone);
    if (victim != kNone) leave(victim, token);
    enter(expert, token);
}

void ReplayedLayer::enter(std::int32_t expert, std::int64_t token) {
    state(expert).resident = true;
    state(expert).place = static_cast<std::int32_t>(candidates_.size());
    candidates_.push_back(expert);
    policy_->inserted(expert, token);
}

void ReplayedLayer::leave(std::int32_t expert, std::int64_t token) {
    state(expert).resident = false;
    policy_->removed(expert, token);
}

void ReplayedLayer::drop_candidate(std::int32_t expert) {
    const std::int32_t place = std::exchange(state(expert).place, kNone);
    const std::int32_t last = candidates_.back();
    candidates_[static_cast<std::size_t>(place)] = last;
    candidates_.pop_back();
    if (last != expert) state(last).place = place;
}

}  // namespace coterie::expert_cache
