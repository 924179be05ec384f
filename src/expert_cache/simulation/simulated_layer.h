#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "expert_cache/policy/policy.h"

namespace coterie::expert_cache {

/// The slots of one layer on one device, as far as they decide who is resident.
class SimulatedLayer {
  public:
    /// `slots` besides the spare ones.
    SimulatedLayer(std::unique_ptr<Policy> policy, std::int32_t experts, std::int32_t slots);

    bool resident(std::int32_t expert) const { return state_[index(expert)] == State::Resident; }
    bool uploading(std::int32_t expert) const { return state_[index(expert)] == State::Uploading; }

    void used(std::int32_t expert, std::int64_t token) { policy_->used(expert, token, resident(expert)); }
    bool admits(std::int32_t expert, std::int64_t token) const { return policy_->admits(expert, token); }

    void begin_upload(std::int32_t expert) { state_[index(expert)] = State::Uploading; }
    /// The expert has arrived: it is resident in place of a victim, unless the policy keeps them all.
    void arrived(std::int32_t expert, std::int64_t token);

  private:
    enum class State : std::uint8_t { Absent, Uploading, Resident };
    static std::size_t index(std::int32_t expert) { return static_cast<std::size_t>(expert); }

    std::unique_ptr<Policy> policy_;
    std::vector<State> state_;
    std::vector<std::int32_t> residents_;
    std::size_t slots_;
};

}  // namespace coterie::expert_cache
