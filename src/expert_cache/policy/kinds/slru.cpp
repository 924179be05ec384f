#include "expert_cache/policy/expert_lists.h"
#include "expert_cache/policy/kinds/kinds.h"

namespace coterie::expert_cache {
namespace {

enum Segment { kProbation, kProtected, kSegments };

/// Four fifths, as in the paper's experiments (Karedla, Love and Wherry, 1994: 60 to 80 %).
std::int32_t protected_share(std::int32_t slots) { return slots * 4 / 5; }

class Slru final : public Policy {
  public:
    explicit Slru(const PolicySetting& setting)
        : lists_(setting.experts, kSegments), protected_limit_(protected_share(setting.slots)) {}

    void used(std::int32_t expert, std::int64_t, bool) override {
        if (lists_.list_of(expert) == ExpertLists::kNone) return;
        lists_.move_to(kProtected, expert);
        demote_surplus();
    }
    bool admits(std::int32_t, std::int64_t) const override { return true; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t, std::int64_t) override {
        const std::int32_t newcomer = lists_.oldest_among(kProbation, candidates);
        return newcomer >= 0 ? newcomer : lists_.oldest_among(kProtected, candidates);
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        return static_cast<double>(lists_.order(expert)) +
               (lists_.list_of(expert) == kProtected ? ExpertLists::kAboveOrders : 0.0);
    }
    void inserted(std::int32_t expert, std::int64_t) override { lists_.move_to(kProbation, expert); }
    void removed(std::int32_t expert, std::int64_t) override { lists_.remove(expert); }
    void resized(std::int32_t slots) override {
        protected_limit_ = protected_share(slots);
        demote_surplus();
    }

  private:
    void demote_surplus() {
        while (lists_.size(kProtected) > protected_limit_) {
            lists_.move_to(kProbation, lists_.oldest(kProtected));
        }
    }
    ExpertLists lists_;
    std::int32_t protected_limit_;
};

}  // namespace

std::unique_ptr<Policy> make_slru(const PolicySetting& setting) { return std::make_unique<Slru>(setting); }

}  // namespace coterie::expert_cache
