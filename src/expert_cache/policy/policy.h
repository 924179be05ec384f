#pragma once

#include <cstdint>
#include <span>

namespace coterie::expert_cache {

/// An expert that a token chose; `hit`: it was resident.
struct ExpertUse {
    std::uint16_t expert;
    bool hit;
};

/// Decides which experts of one layer are worth their slots. It sees uses and residency and nothing else: no
/// bytes, devices or time but the count of tokens, so that a recorded trace can drive it.
///
/// `token` never decreases from call to call. Experts are numbers below the count the policy was made for.
class Policy {
  public:
    virtual ~Policy() = default;

    /// A token chose this expert; `hit`: it was resident.
    virtual void used(std::int32_t expert, std::int64_t token, bool hit) = 0;
    /// The same of all that a token chose.
    virtual void token_used(std::span<const ExpertUse> uses, std::int64_t token) {
        for (const ExpertUse& use : uses) used(use.expert, token, use.hit);
    }

    /// Whether an expert that was just missed may take a slot.
    virtual bool admits(std::int32_t expert, std::int64_t token) const = 0;

    /// The one of `candidates` (residents that may go; not empty) to replace by `incoming`, or -1 where all
    /// of them are worth more.
    virtual std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                                std::int64_t token) = 0;

    /// Whether all residents are known to be worth more than `incoming`, so that `victim` would say -1
    /// whichever of them may go. May miss that; saves the search.
    virtual bool keeps_all(std::int32_t incoming, std::int64_t token) {
        static_cast<void>(incoming), static_cast<void>(token);
        return false;
    }

    /// What an expert is worth: the larger, the later it should go. Compares only within this policy.
    virtual double worth(std::int32_t expert, std::int64_t token) const = 0;

    virtual void inserted(std::int32_t expert, std::int64_t token) = 0;
    virtual void removed(std::int32_t expert, std::int64_t token) = 0;

    /// The layer now has this many slots. Policies that count on a capacity follow it.
    virtual void resized(std::int32_t slots) { static_cast<void>(slots); }
};

}  // namespace coterie::expert_cache
