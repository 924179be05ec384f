#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

class Lru final : public Policy {
  public:
    explicit Lru(const PolicySetting& setting) : last_use_(static_cast<std::size_t>(setting.experts)) {}

    void used(std::int32_t expert, std::int64_t, bool) override {
        last_use_[static_cast<std::size_t>(expert)] = ++clock_;
    }
    bool admits(std::int32_t, std::int64_t) const override { return true; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t, std::int64_t) override {
        return least(candidates, [&](std::int32_t expert) { return last_use(expert); });
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        return static_cast<double>(last_use(expert));
    }
    void inserted(std::int32_t, std::int64_t) override {}
    void removed(std::int32_t, std::int64_t) override {}

  private:
    std::uint64_t last_use(std::int32_t expert) const { return last_use_[static_cast<std::size_t>(expert)]; }

    std::vector<std::uint64_t> last_use_;  ///< by the clock of uses; 0: never
    std::uint64_t clock_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_lru(const PolicySetting& setting) { return std::make_unique<Lru>(setting); }

}  // namespace coterie::expert_cache
