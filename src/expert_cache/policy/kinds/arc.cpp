#include <algorithm>

#include "expert_cache/policy/expert_lists.h"
#include "expert_cache/policy/kinds/kinds.h"

namespace coterie::expert_cache {
namespace {

/// T1, T2, B1 and B2 of the paper.
enum List { kOnce, kAgain, kLeftOnce, kLeftAgain, kLists };

class Arc final : public Policy {
  public:
    explicit Arc(const PolicySetting& setting) : lists_(setting.experts, kLists), slots_(setting.slots) {}

    void used(std::int32_t expert, std::int64_t, bool) override {
        const int list = lists_.list_of(expert);
        if (list == kOnce || list == kAgain) lists_.move_to(kAgain, expert);
        if (list == kLeftOnce) adapt(+ratio(kLeftAgain, kLeftOnce));
        if (list == kLeftAgain) adapt(-ratio(kLeftOnce, kLeftAgain));
    }
    bool admits(std::int32_t, std::int64_t) const override { return true; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t) override {
        const int list = replaced_list(incoming);
        const std::int32_t oldest = lists_.oldest_among(list, candidates);
        return oldest >= 0 ? oldest : lists_.oldest_among(list == kOnce ? kAgain : kOnce, candidates);
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        return static_cast<double>(lists_.order(expert)) +
               (lists_.list_of(expert) == kAgain ? ExpertLists::kAboveOrders : 0.0);
    }
    void inserted(std::int32_t expert, std::int64_t) override {
        lists_.move_to(lists_.list_of(expert) == ExpertLists::kNone ? kOnce : kAgain, expert);
        forget_surplus();
    }
    void removed(std::int32_t expert, std::int64_t) override {
        lists_.move_to(lists_.list_of(expert) == kOnce ? kLeftOnce : kLeftAgain, expert);
        forget_surplus();
    }
    void resized(std::int32_t slots) override {
        slots_ = slots;
        adapt(0.0);
        forget_surplus();
    }

  private:
    double ratio(List numerator, List denominator) const {
        return std::max(1.0, static_cast<double>(lists_.size(numerator)) / lists_.size(denominator));
    }
    void adapt(double change) {
        once_target_ = std::clamp(once_target_ + change, 0.0, static_cast<double>(slots_));
    }
    /// The list that is longer than its share.
    int replaced_list(std::int32_t incoming) const {
        const double once = lists_.size(kOnce);
        const bool surplus =
            once > once_target_ || (once == once_target_ && lists_.list_of(incoming) == kLeftAgain);
        return once > 0.0 && surplus ? kOnce : kAgain;
    }
    /// What left is remembered as long as once-lists hold no more than the slots, all lists twice that.
    void forget_surplus() {
        while (lists_.size(kOnce) + lists_.size(kLeftOnce) > slots_ && lists_.size(kLeftOnce) > 0) {
            lists_.remove(lists_.oldest(kLeftOnce));
        }
        while (total() > 2 * slots_ && lists_.size(kLeftAgain) > 0) {
            lists_.remove(lists_.oldest(kLeftAgain));
        }
    }
    std::int32_t total() const {
        return lists_.size(kOnce) + lists_.size(kAgain) + lists_.size(kLeftOnce) + lists_.size(kLeftAgain);
    }

    ExpertLists lists_;
    std::int32_t slots_;
    double once_target_ = 0.0;  ///< p of the paper: slots for experts used once
};

}  // namespace

std::unique_ptr<Policy> make_arc(const PolicySetting& setting) { return std::make_unique<Arc>(setting); }

}  // namespace coterie::expert_cache
