#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/split_mix.h"
#include "expert_cache/policy/policy.h"

namespace coterie::expert_cache::testing {

/// A random routing of one layer: popular experts, whose popularity drifts.
class RandomRouting {
  public:
    RandomRouting(std::uint64_t seed, std::int32_t experts, std::int32_t used)
        : random_(seed), experts_(experts), used_(used) {}

    /// The experts of the next token, all different.
    std::vector<std::int32_t> next() {
        if (random_.next() % 100 == 0) shift_ = below(experts_);
        std::vector<std::int32_t> chosen;
        while (static_cast<std::int32_t>(chosen.size()) < used_) {
            const double uniform = random_.next_float();
            const auto popular = static_cast<std::int32_t>(uniform * uniform * uniform * experts_);
            const std::int32_t expert = (popular + shift_) % experts_;
            if (std::find(chosen.begin(), chosen.end(), expert) == chosen.end()) chosen.push_back(expert);
        }
        return chosen;
    }
    std::int32_t below(std::int32_t limit) {
        return static_cast<std::int32_t>(random_.next() % static_cast<std::uint64_t>(limit));
    }

  private:
    SplitMix64 random_;
    std::int32_t experts_;
    std::int32_t used_;
    std::int32_t shift_ = 0;
};

/// The residents of one layer, moved as a policy says.
class Layer {
  public:
    Layer(std::int32_t experts, std::int32_t slots) : resident_(static_cast<std::size_t>(experts)) {
        slots_ = slots;
    }

    bool holds(std::int32_t expert) const { return resident_[static_cast<std::size_t>(expert)]; }
    std::vector<std::int32_t> residents() const {
        std::vector<std::int32_t> result;
        for (std::size_t i = 0; i < resident_.size(); ++i) {
            if (resident_[i]) result.push_back(static_cast<std::int32_t>(i));
        }
        return result;
    }
    bool full() const { return static_cast<std::int32_t>(residents().size()) >= slots_; }
    void set(std::int32_t expert, bool resident) { resident_[static_cast<std::size_t>(expert)] = resident; }

    /// Hits of one token, whose misses enter at its end where the policy lets them.
    int serve(Policy& policy, std::int64_t token, const std::vector<std::int32_t>& experts) {
        int hits = 0;
        std::vector<std::int32_t> missed;
        for (const std::int32_t expert : experts) {
            policy.used(expert, token, holds(expert));
            holds(expert) ? void(++hits) : missed.push_back(expert);
        }
        for (const std::int32_t expert : missed) admit(policy, token, expert);
        return hits;
    }

  private:
    void admit(Policy& policy, std::int64_t token, std::int32_t expert) {
        if (slots_ == 0 || !policy.admits(expert, token)) return;
        if (full()) {
            if (policy.keeps_all(expert, token)) return;
            const std::int32_t victim = policy.victim(residents(), expert, token);
            if (victim < 0) return;
            set(victim, false);
            policy.removed(victim, token);
        }
        set(expert, true);
        policy.inserted(expert, token);
    }

    std::vector<bool> resident_;
    std::int32_t slots_;
};

}  // namespace coterie::expert_cache::testing
