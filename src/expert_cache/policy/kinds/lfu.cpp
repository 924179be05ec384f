#include "expert_cache/policy/ageing_count.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

class Lfu final : public Policy {
  public:
    explicit Lfu(const PolicySetting& setting) : counts_(setting.experts, kCountHalfLifeTokens) {}

    void used(std::int32_t expert, std::int64_t token, bool) override { counts_.add(expert, token); }
    void token_used(std::span<const ExpertUse> chosen, std::int64_t token) override {
        for (const ExpertUse& use : chosen) counts_.add(use.expert, token);
    }
    bool admits(std::int32_t, std::int64_t) const override { return true; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t, std::int64_t) override {
        return least(candidates, [&](std::int32_t expert) { return counts_.relative(expert); });
    }
    double worth(std::int32_t expert, std::int64_t token) const override {
        return counts_.uses(expert, token);
    }
    void inserted(std::int32_t, std::int64_t) override {}
    void removed(std::int32_t, std::int64_t) override {}

  private:
    AgeingCount counts_;
};

}  // namespace

std::unique_ptr<Policy> make_lfu(const PolicySetting& setting) { return std::make_unique<Lfu>(setting); }

}  // namespace coterie::expert_cache
