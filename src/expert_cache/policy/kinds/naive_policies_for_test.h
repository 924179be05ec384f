#pragma once

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "expert_cache/policy/registry.h"

/// Every policy again, as its definition reads and as slow as that is.
namespace coterie::expert_cache::testing {

/// Remembers every use and looks through all of them for every question.
class NaivePolicy : public Policy {
  public:
    explicit NaivePolicy(const PolicySetting& setting) : setting_(setting) {}
    void used(std::int32_t expert, std::int64_t token, bool) override { uses_.push_back({expert, token}); }
    bool admits(std::int32_t, std::int64_t) const override { return true; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t, std::int64_t token) override {
        std::vector<std::int32_t> sorted(candidates.begin(), candidates.end());
        std::sort(sorted.begin(), sorted.end());
        return *std::min_element(sorted.begin(), sorted.end(), [&](std::int32_t a, std::int32_t b) {
            return worth(a, token) < worth(b, token);
        });
    }
    void inserted(std::int32_t expert, std::int64_t) override { residents_.push_back(expert); }
    void removed(std::int32_t expert, std::int64_t) override { std::erase(residents_, expert); }
    void resized(std::int32_t slots) override { setting_.slots = slots; }

  protected:
    struct Use {
        std::int32_t expert;
        std::int64_t token;
    };
    PolicySetting setting_;
    std::vector<Use> uses_;
    std::vector<std::int32_t> residents_;
};

class NaiveLru : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    double worth(std::int32_t expert, std::int64_t) const override {
        for (std::size_t i = uses_.size(); i > 0; --i) {
            if (uses_[i - 1].expert == expert) return static_cast<double>(i);
        }
        return 0.0;
    }
};

class NaiveLfu : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    double worth(std::int32_t expert, std::int64_t token) const override {
        double sum = 0.0;
        for (const Use& use : uses_) {
            if (use.expert == expert) sum += std::exp2(static_cast<double>(use.token - token) / 128.0);
        }
        return sum;
    }
};

class NaiveAdmit final : public NaiveLfu {
  public:
    using NaiveLfu::NaiveLfu;
    bool admits(std::int32_t expert, std::int64_t token) const override {
        return static_cast<std::int32_t>(residents_.size()) < setting_.slots ||
               recent_uses(expert, token) >= 2;
    }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t token) override {
        if (recent_uses(incoming, token) < 2) return -1;
        const std::int32_t last = NaiveLfu::victim(candidates, incoming, token);
        return worth(last, token) <= worth(incoming, token) ? last : -1;
    }

  private:
    std::ptrdiff_t recent_uses(std::int32_t expert, std::int64_t token) const {
        return std::count_if(uses_.begin(), uses_.end(),
                             [&](const Use& use) { return use.expert == expert && use.token > token - 64; });
    }
};

inline void drop(std::list<std::int32_t>& list, std::int32_t expert) { list.remove(expert); }
inline bool contains(const std::list<std::int32_t>& list, std::int32_t expert) {
    return std::find(list.begin(), list.end(), expert) != list.end();
}
/// Where the expert stands in the list, or -1.
inline double place(const std::list<std::int32_t>& list, std::int32_t expert) {
    const auto found = std::find(list.begin(), list.end(), expert);
    return found == list.end() ? -1.0 : static_cast<double>(std::distance(list.begin(), found));
}

class NaiveSlru final : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    void used(std::int32_t expert, std::int64_t, bool) override {
        if (!contains(probation_, expert) && !contains(protected_, expert)) return;
        drop(probation_, expert);
        drop(protected_, expert);
        protected_.push_back(expert);
        demote();
    }
    void inserted(std::int32_t expert, std::int64_t) override { probation_.push_back(expert); }
    void removed(std::int32_t expert, std::int64_t) override {
        drop(probation_, expert);
        drop(protected_, expert);
    }
    void resized(std::int32_t slots) override {
        setting_.slots = slots;
        demote();
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        const double in_protected = place(protected_, expert);
        return in_protected >= 0.0 ? 1000.0 + in_protected : place(probation_, expert);
    }

  private:
    void demote() {
        while (static_cast<std::int32_t>(protected_.size()) > setting_.slots * 4 / 5) {
            probation_.push_back(protected_.front());
            protected_.pop_front();
        }
    }
    std::list<std::int32_t> probation_;
    std::list<std::int32_t> protected_;
};

/// The pseudo-code of the paper's figure 4, cut where the interface cuts it.
class NaiveArc final : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    void used(std::int32_t expert, std::int64_t, bool) override {
        const double c = setting_.slots;
        const auto b1 = static_cast<double>(b1_.size());
        const auto b2 = static_cast<double>(b2_.size());
        if (contains(t1_, expert) || contains(t2_, expert)) {
            drop(t1_, expert);
            drop(t2_, expert);
            t2_.push_back(expert);
        } else if (contains(b1_, expert)) {
            p_ = std::min(c, p_ + (b1 >= b2 ? 1.0 : b2 / b1));
        } else if (contains(b2_, expert)) {
            p_ = std::max(0.0, p_ - (b2 >= b1 ? 1.0 : b1 / b2));
        }
    }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t) override {
        const auto t1 = static_cast<double>(t1_.size());
        const bool from_t1 = t1 >= 1.0 && (t1 > p_ || (contains(b2_, incoming) && t1 == p_));
        const auto allowed = [&](std::int32_t expert) {
            return std::find(candidates.begin(), candidates.end(), expert) != candidates.end();
        };
        std::vector<std::int32_t> order(t1_.begin(), t1_.end());
        order.insert(from_t1 ? order.end() : order.begin(), t2_.begin(), t2_.end());
        return *std::find_if(order.begin(), order.end(), allowed);
    }
    void removed(std::int32_t expert, std::int64_t) override {
        (contains(t1_, expert) ? b1_ : b2_).push_back(expert);
        drop(t1_, expert);
        drop(t2_, expert);
        trim();
    }
    void inserted(std::int32_t expert, std::int64_t) override {
        const bool again = contains(b1_, expert) || contains(b2_, expert);
        drop(b1_, expert);
        drop(b2_, expert);
        (again ? t2_ : t1_).push_back(expert);
        trim();
    }
    void resized(std::int32_t slots) override {
        setting_.slots = slots;
        p_ = std::min(p_, static_cast<double>(slots));
        trim();
    }
    double worth(std::int32_t expert, std::int64_t) const override {
        return contains(t2_, expert) ? 1.0 : place(t1_, expert);
    }

  private:
    void trim() {
        const auto c = static_cast<std::size_t>(setting_.slots);
        while (t1_.size() + b1_.size() > c && !b1_.empty()) b1_.pop_front();
        while (t1_.size() + t2_.size() + b1_.size() + b2_.size() > 2 * c && !b2_.empty()) b2_.pop_front();
    }
    std::list<std::int32_t> t1_, t2_, b1_, b2_;
    double p_ = 0.0;
};

class NaiveStatic final : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    bool admits(std::int32_t expert, std::int64_t) const override { return better(expert) < setting_.slots; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t token) override {
        if (!admits(incoming, token)) return -1;
        const auto worst =
            *std::max_element(candidates.begin(), candidates.end(),
                              [&](std::int32_t a, std::int32_t b) { return better(a) < better(b); });
        return admits(worst, token) ? -1 : worst;
    }
    double worth(std::int32_t expert, std::int64_t) const override { return profile(expert); }

  private:
    float profile(std::int32_t expert) const { return setting_.profile[static_cast<std::size_t>(expert)]; }
    std::int32_t better(std::int32_t expert) const {
        std::int32_t count = 0;
        for (std::int32_t other = 0; other < setting_.experts; ++other) {
            count +=
                profile(other) > profile(expert) || (profile(other) == profile(expert) && other < expert);
        }
        return count;
    }
};

class NaiveBelady final : public NaivePolicy {
  public:
    using NaivePolicy::NaivePolicy;
    bool admits(std::int32_t expert, std::int64_t token) const override {
        return next(expert, token) < kNeverAgain;
    }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t token) override {
        const std::int32_t last = NaivePolicy::victim(candidates, incoming, token);
        return next(last, token) > next(incoming, token) ? last : -1;
    }
    double worth(std::int32_t expert, std::int64_t token) const override { return -next(expert, token); }

  private:
    static constexpr double kNeverAgain = 1e18;
    double next(std::int32_t expert, std::int64_t token) const {
        for (const std::int64_t use : setting_.future[static_cast<std::size_t>(expert)]) {
            if (use > token) return static_cast<double>(use);
        }
        return kNeverAgain;
    }
};

template <typename Naive>
std::unique_ptr<Policy> make_naive_kind(const PolicySetting& setting) {
    return std::make_unique<Naive>(setting);
}

inline std::unique_ptr<Policy> make_naive_policy(std::string_view name, const PolicySetting& setting) {
    static const std::map<std::string_view, std::unique_ptr<Policy> (*)(const PolicySetting&)> kKinds{
        {"admit", make_naive_kind<NaiveAdmit>},   {"arc", make_naive_kind<NaiveArc>},
        {"belady", make_naive_kind<NaiveBelady>}, {"lfu", make_naive_kind<NaiveLfu>},
        {"lru", make_naive_kind<NaiveLru>},       {"slru", make_naive_kind<NaiveSlru>},
        {"static", make_naive_kind<NaiveStatic>}};
    return kKinds.at(name)(setting);
}

}  // namespace coterie::expert_cache::testing
