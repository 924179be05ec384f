#include <algorithm>
#include <limits>

#include "expert_cache/policy/ageing_count.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kWindowTokens = 64;
constexpr double kHalfLifeTokens = 128.0;
constexpr double kNotResident = std::numeric_limits<double>::infinity();
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

class Admit final : public Policy {
  public:
    explicit Admit(const PolicySetting& setting)
        : counts_(setting.experts, kHalfLifeTokens),
          uses_(static_cast<std::size_t>(setting.experts)),
          beyond_(static_cast<std::size_t>(setting.experts), kNotResident),
          slots_(setting.slots) {}

    void used(std::int32_t expert, std::int64_t token, bool) override {
        counts_.add(expert, token);
        LastUses& uses = uses_[static_cast<std::size_t>(expert)];
        uses.before_last = uses.last;
        uses.last = token;
    }
    bool admits(std::int32_t expert, std::int64_t token) const override {
        return residents_ < slots_ || used_twice(expert, token);
    }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t token) override {
        if (!used_twice(incoming, token)) return -1;  // admitted to a free slot that is gone by now
        const std::int32_t last = least(candidates, [&](std::int32_t e) { return counts_.relative(e); });
        if (counts_.relative(last) <= counts_.relative(incoming)) return last;
        find_floor();  // so that the next ones like it are turned away without a search
        return -1;
    }
    bool keeps_all(std::int32_t incoming, std::int64_t token) override {
        if (!used_twice(incoming, token)) return true;
        return counts_.relative(incoming) < floor_ && counts_.weight() >= floor_weight_;
    }
    double worth(std::int32_t expert, std::int64_t token) const override {
        return counts_.uses(expert, token);
    }
    void inserted(std::int32_t expert, std::int64_t) override {
        ++residents_;
        beyond_[static_cast<std::size_t>(expert)] = 0;
        floor_ = std::min(floor_, counts_.relative(expert));
    }
    void removed(std::int32_t expert, std::int64_t) override {
        --residents_;
        beyond_[static_cast<std::size_t>(expert)] = kNotResident;
    }
    void resized(std::int32_t slots) override { slots_ = slots; }

  private:
    struct LastUses {
        std::int64_t last = kNever;
        std::int64_t before_last = kNever;
    };
    bool used_twice(std::int32_t expert, std::int64_t token) const {
        return uses_[static_cast<std::size_t>(expert)].before_last > token - kWindowTokens;
    }

    /// No resident counts less than the floor: counts only grow until they are scaled back.
    void find_floor() {
        double least = kNotResident;
        for (std::size_t e = 0; e < beyond_.size(); ++e) {
            least = std::min(least, counts_.relative(static_cast<std::int32_t>(e)) + beyond_[e]);
        }
        floor_ = least;
        floor_weight_ = counts_.weight();
    }

    AgeingCount counts_;
    std::vector<LastUses> uses_;
    std::vector<double> beyond_;  ///< [experts]: 0 for residents, kNotResident for others
    double floor_ = 0;
    double floor_weight_ = 1;  ///< of a use when the floor was found
    std::int32_t slots_;
    std::int32_t residents_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_admit(const PolicySetting& setting) { return std::make_unique<Admit>(setting); }

}  // namespace coterie::expert_cache
