#include <algorithm>
#include <bit>
#include <limits>

#include "expert_cache/policy/ageing_count.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kWindowTokens = 64;
constexpr std::int32_t kLongAgo = -kWindowTokens;
constexpr std::int64_t kRebaseTokens = std::int64_t{1} << 30;

class Admit final : public Policy {
  public:
    explicit Admit(const PolicySetting& setting)
        : weight_(kCountHalfLifeTokens),
          experts_(static_cast<std::size_t>(setting.experts)),
          residents_(static_cast<std::size_t>(setting.experts + 63) / 64),
          slots_(setting.slots) {}

    void used(std::int32_t expert, std::int64_t token, bool) override {
        advance(token);
        note(at(expert), token);
    }
    void token_used(std::span<const ExpertUse> chosen, std::int64_t token) override {
        advance(token);
        for (const ExpertUse& use : chosen) note(at(use.expert), token);
    }
    bool admits(std::int32_t expert, std::int64_t token) const override {
        return resident_count_ < slots_ || used_twice(expert, token);
    }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t token) override {
        if (!used_twice(incoming, token)) return -1;  // admitted to a free slot that is gone by now
        const std::int32_t last = least(candidates, [&](std::int32_t e) { return at(e).count; });
        if (at(last).count <= at(incoming).count) return last;
        find_floor();  // so that the next ones like it are turned away without a search
        return -1;
    }
    bool keeps_all(std::int32_t incoming, std::int64_t token) override {
        if (!used_twice(incoming, token)) return true;
        return at(incoming).count < floor_ && weight_.now() >= floor_weight_;
    }
    double worth(std::int32_t expert, std::int64_t token) const override {
        return weight_.uses(at(expert).count, token);
    }
    void inserted(std::int32_t expert, std::int64_t) override {
        ++resident_count_;
        residents_[static_cast<std::size_t>(expert / 64)] |= bit(expert);
        floor_ = std::min(floor_, at(expert).count);
    }
    void removed(std::int32_t expert, std::int64_t) override {
        --resident_count_;
        residents_[static_cast<std::size_t>(expert / 64)] &= ~bit(expert);
    }
    void resized(std::int32_t slots) override { slots_ = slots; }

  private:
    /// All that a use touches, in a quarter of a line of the CPU's cache. Tokens count from `base_`.
    struct Expert {
        double count = 0;
        std::int32_t last = kLongAgo;
        std::int32_t before_last = kLongAgo;
    };
    static std::uint64_t bit(std::int32_t expert) { return std::uint64_t{1} << (expert % 64); }
    const Expert& at(std::int32_t expert) const { return experts_[static_cast<std::size_t>(expert)]; }
    Expert& at(std::int32_t expert) { return experts_[static_cast<std::size_t>(expert)]; }

    void note(Expert& expert, std::int64_t token) {
        expert.count += weight_.now();
        expert.before_last = expert.last;
        expert.last = static_cast<std::int32_t>(token - base_);
    }
    bool used_twice(std::int32_t expert, std::int64_t token) const {
        return at(expert).before_last > token - base_ - kWindowTokens;
    }

    void advance(std::int64_t token) {
        weight_.advance(token, [&](double factor) {
            for (Expert& expert : experts_) expert.count *= factor;
        });
        if (token - base_ >= kRebaseTokens) rebase(token);
    }
    void rebase(std::int64_t token) {
        const std::int64_t passed = token - base_;
        const auto moved = [&](std::int32_t at) {
            return static_cast<std::int32_t>(std::max<std::int64_t>(at - passed, kLongAgo));
        };
        for (Expert& expert : experts_) {
            expert.last = moved(expert.last);
            expert.before_last = moved(expert.before_last);
        }
        base_ = token;
    }

    /// No resident counts less than the floor: counts only grow until they are scaled back.
    void find_floor() {
        floor_ = std::numeric_limits<double>::infinity();
        for (std::size_t w = 0; w < residents_.size(); ++w) {
            for (std::uint64_t left = residents_[w]; left != 0; left &= left - 1) {
                floor_ = std::min(floor_,
                                  experts_[64 * w + static_cast<std::size_t>(std::countr_zero(left))].count);
            }
        }
        floor_weight_ = weight_.now();
    }

    AgeingWeight weight_;
    std::vector<Expert> experts_;
    std::vector<std::uint64_t> residents_;  ///< a bit for each expert
    double floor_ = 0;
    double floor_weight_ = 1;  ///< of a use when the floor was found
    std::int64_t base_ = 0;
    std::int32_t slots_;
    std::int32_t resident_count_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_admit(const PolicySetting& setting) { return std::make_unique<Admit>(setting); }

}  // namespace coterie::expert_cache
