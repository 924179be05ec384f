#include <limits>

#include "base/error.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

constexpr std::int64_t kNeverAgain = std::numeric_limits<std::int64_t>::max();

class Belady final : public Policy {
  public:
    explicit Belady(const PolicySetting& setting) : future_(setting.future), passed_(future_.size()) {
        COTERIE_CHECK(static_cast<std::int32_t>(future_.size()) == setting.experts);
    }

    void used(std::int32_t expert, std::int64_t token, bool) override {
        const auto i = static_cast<std::size_t>(expert);
        while (passed_[i] < future_[i].size() && future_[i][passed_[i]] <= token) ++passed_[i];
    }
    bool admits(std::int32_t expert, std::int64_t) const override { return next_use(expert) != kNeverAgain; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t) override {
        const std::int32_t last = least(candidates, [&](std::int32_t expert) { return -next_use(expert); });
        return next_use(last) > next_use(incoming) ? last : -1;
    }
    double worth(std::int32_t expert, std::int64_t token) const override {
        return 1.0 / static_cast<double>(next_use(expert) - token);
    }
    void inserted(std::int32_t, std::int64_t) override {}
    void removed(std::int32_t, std::int64_t) override {}

  private:
    /// The first use not reported yet.
    std::int64_t next_use(std::int32_t expert) const {
        const auto i = static_cast<std::size_t>(expert);
        return passed_[i] < future_[i].size() ? future_[i][passed_[i]] : kNeverAgain;
    }

    std::span<const std::vector<std::int64_t>> future_;
    std::vector<std::size_t> passed_;  ///< [experts] uses that have been reported
};

}  // namespace

std::unique_ptr<Policy> make_belady(const PolicySetting& setting) {
    return std::make_unique<Belady>(setting);
}

}  // namespace coterie::expert_cache
