#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "expert_cache/policy/kinds/kinds.h"
#include "expert_cache/policy/least.h"

namespace coterie::expert_cache {
namespace {

class Static final : public Policy {
  public:
    explicit Static(const PolicySetting& setting)
        : profile_(setting.profile.begin(), setting.profile.end()),
          rank_(profile_.size()),
          slots_(setting.slots) {
        COTERIE_CHECK(static_cast<std::int32_t>(profile_.size()) == setting.experts);
        COTERIE_CHECK(std::none_of(profile_.begin(), profile_.end(), [](float u) { return std::isnan(u); }));
        std::vector<std::size_t> experts(profile_.size());
        std::iota(experts.begin(), experts.end(), 0);
        std::stable_sort(experts.begin(), experts.end(),
                         [&](std::size_t a, std::size_t b) { return profile_[a] > profile_[b]; });
        for (std::size_t i = 0; i < experts.size(); ++i) rank_[experts[i]] = static_cast<std::int32_t>(i);
    }

    void used(std::int32_t, std::int64_t, bool) override {}
    bool admits(std::int32_t expert, std::int64_t) const override { return kept(expert); }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t) override {
        if (!kept(incoming)) return -1;
        const std::int32_t last = least(candidates, [&](std::int32_t expert) { return -rank(expert); });
        return kept(last) ? -1 : last;
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        return static_cast<double>(profile_[static_cast<std::size_t>(expert)]);
    }
    void inserted(std::int32_t, std::int64_t) override {}
    void removed(std::int32_t, std::int64_t) override {}
    void resized(std::int32_t slots) override { slots_ = slots; }

  private:
    std::int32_t rank(std::int32_t expert) const { return rank_[static_cast<std::size_t>(expert)]; }
    bool kept(std::int32_t expert) const { return rank(expert) < slots_; }

    std::vector<float> profile_;
    std::vector<std::int32_t> rank_;  ///< [experts] 0: the most used
    std::int32_t slots_;
};

}  // namespace

std::unique_ptr<Policy> make_static(const PolicySetting& setting) {
    return std::make_unique<Static>(setting);
}

}  // namespace coterie::expert_cache
