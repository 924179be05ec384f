#include "expert_cache/simulation/simulated_layer.h"

#include <algorithm>

namespace coterie::expert_cache {

SimulatedLayer::SimulatedLayer(std::unique_ptr<Policy> policy, std::int32_t experts, std::int32_t slots)
    : policy_(std::move(policy)),
      state_(static_cast<std::size_t>(experts), State::Absent),
      slots_(static_cast<std::size_t>(slots)) {}

void SimulatedLayer::arrived(std::int32_t expert, std::int64_t token) {
    state_[index(expert)] = State::Absent;
    if (residents_.size() >= slots_) {
        const std::int32_t victim = slots_ == 0 ? -1 : policy_->victim(residents_, expert, token);
        if (victim < 0) return;
        state_[index(victim)] = State::Absent;
        residents_.erase(std::find(residents_.begin(), residents_.end(), victim));
        policy_->removed(victim, token);
    }
    state_[index(expert)] = State::Resident;
    residents_.push_back(expert);
    policy_->inserted(expert, token);
}

}  // namespace coterie::expert_cache
