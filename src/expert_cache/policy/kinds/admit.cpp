#include <limits>

#include "expert_cache/policy/ageing_count.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kWindowTokens = 64;
constexpr double kHalfLifeTokens = 128.0;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

class Admit final : public Policy {
  public:
    explicit Admit(const PolicySetting& setting)
        : counts_(setting.experts, kHalfLifeTokens),
          uses_(static_cast<std::size_t>(setting.experts)),
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
        return counts_.relative(last) <= counts_.relative(incoming) ? last : -1;
    }
    double worth(std::int32_t expert, std::int64_t token) const override {
        return counts_.uses(expert, token);
    }
    void inserted(std::int32_t, std::int64_t) override { ++residents_; }
    void removed(std::int32_t, std::int64_t) override { --residents_; }
    void resized(std::int32_t slots) override { slots_ = slots; }

  private:
    struct LastUses {
        std::int64_t last = kNever;
        std::int64_t before_last = kNever;
    };
    bool used_twice(std::int32_t expert, std::int64_t token) const {
        return uses_[static_cast<std::size_t>(expert)].before_last > token - kWindowTokens;
    }

    AgeingCount counts_;
    std::vector<LastUses> uses_;
    std::int32_t slots_;
    std::int32_t residents_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_admit(const PolicySetting& setting) { return std::make_unique<Admit>(setting); }

}  // namespace coterie::expert_cache
