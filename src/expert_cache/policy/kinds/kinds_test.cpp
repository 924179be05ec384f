#include <gtest/gtest.h>
#include <numeric>
#include <string>

#include "expert_cache/policy/kinds/naive_policies_for_test.h"
#include "expert_cache/policy/layer_for_test.h"
#include "expert_cache/policy/registry.h"

namespace coterie::expert_cache {
namespace {

constexpr std::uint64_t kSeed = 20240731;
constexpr std::int32_t kExperts = 40;
constexpr std::int32_t kUsed = 4;
constexpr std::int64_t kTokens = 600;

/// One layer's routing and what is known of it.
struct Trace {
    explicit Trace(std::uint64_t seed) : profile(kExperts), future(kExperts) {
        testing::RandomRouting routing(seed, kExperts, kUsed);
        for (std::int64_t token = 0; token < kTokens; ++token) {
            tokens.push_back(routing.next());
            for (const std::int32_t expert : tokens.back()) {
                profile[static_cast<std::size_t>(expert)] += 1.0f;
                future[static_cast<std::size_t>(expert)].push_back(token);
            }
        }
    }
    PolicySetting setting(std::int32_t slots) const { return {kExperts, slots, profile, future}; }

    std::vector<std::vector<std::int32_t>> tokens;
    std::vector<float> profile;
    std::vector<std::vector<std::int64_t>> future;
};

/// Asks a policy and its naive twin the same questions, and lets neither have its way always: some experts
/// are leased, some copies are refused, some land tokens later, and the number of slots changes.
class Twins {
  public:
    Twins(std::string_view name, const Trace& trace, std::int32_t slots, std::uint64_t seed)
        : policy_(make_policy(name, trace.setting(slots))),
          naive_(testing::make_naive_policy(name, trace.setting(slots))),
          layer_(kExperts, slots),
          random_(seed, kExperts, kUsed),
          slots_(slots) {}

    void serve(std::int64_t token, const std::vector<std::int32_t>& experts) {
        land_copies();  // between the last token and this one
        token_ = token;
        for (const std::int32_t expert : experts) {
            both([&](Policy& policy) { policy.used(expert, token, layer_.holds(expert)); });
        }
        for (const std::int32_t expert : experts) {
            const bool admitted = policy_->admits(expert, token);
            EXPECT_EQ(admitted, naive_->admits(expert, token)) << "expert " << expert;
            if (!layer_.holds(expert) && policy_->keeps_all(expert, token))
                expect_nobody_leaves_for(expert, token);
            if (admitted && !layer_.holds(expert) && random_.below(4) > 0) copies_.push_back(expert);
        }
        if (random_.below(50) == 0) resize();
    }

  private:
    void expect_nobody_leaves_for(std::int32_t expert, std::int64_t token) {
        const std::vector<std::int32_t> residents = layer_.residents();
        if (residents.empty()) return;
        EXPECT_EQ(policy_->victim(residents, expert, token), -1) << "expert " << expert;
    }
    template <typename Call>
    void both(Call call) {
        call(*policy_);
        call(*naive_);
    }
    void land_copies() {
        while (!copies_.empty() && random_.below(3) > 0) {
            const std::int32_t expert = copies_.front();
            copies_.erase(copies_.begin());
            if (!layer_.holds(expert) && make_room(expert)) insert(expert);
        }
    }
    bool make_room(std::int32_t incoming) {
        while (static_cast<std::int32_t>(layer_.residents().size()) >= slots_) {
            const std::int32_t victim = agreed_victim(incoming);
            if (victim < 0) return false;
            layer_.set(victim, false);
            both([&](Policy& policy) { policy.removed(victim, token_); });
        }
        return true;
    }
    std::int32_t agreed_victim(std::int32_t incoming) {
        std::vector<std::int32_t> candidates = layer_.residents();
        if (candidates.empty()) return -1;
        for (std::size_t i = candidates.size(); i-- > 1;) {  // in any order, and not all of them
            std::swap(candidates[i],
                      candidates[static_cast<std::size_t>(random_.below(static_cast<int>(i)))]);
            if (random_.below(8) == 0) candidates.pop_back();
        }
        const std::int32_t victim = policy_->victim(candidates, incoming, token_);
        EXPECT_EQ(victim, naive_->victim(candidates, incoming, token_));
        return victim;
    }
    void insert(std::int32_t expert) {
        layer_.set(expert, true);
        both([&](Policy& policy) { policy.inserted(expert, token_); });
    }
    void resize() {
        slots_ = 1 + random_.below(kExperts);
        both([&](Policy& policy) { policy.resized(slots_); });
    }

    std::unique_ptr<Policy> policy_;
    std::unique_ptr<Policy> naive_;
    testing::Layer layer_;
    testing::RandomRouting random_;
    std::vector<std::int32_t> copies_;  ///< on their way
    std::int32_t slots_;
    std::int64_t token_ = 0;
};

class EveryKind : public ::testing::TestWithParam<PolicyKind> {};

TEST_P(EveryKind, DecidesAsItsDefinitionDoes) {
    for (const std::int32_t slots : {1, 2, 5, 13, 39, 40}) {
        const std::uint64_t seed = kSeed + static_cast<std::uint64_t>(slots);
        SCOPED_TRACE("slots " + std::to_string(slots) + ", seed " + std::to_string(seed));
        const Trace trace(seed);
        Twins twins(GetParam().name, trace, slots, seed);
        for (std::int64_t token = 0; token < kTokens && !HasFailure(); ++token) {
            SCOPED_TRACE("token " + std::to_string(token));
            twins.serve(token, trace.tokens[static_cast<std::size_t>(token)]);
        }
    }
}

std::int64_t hits(std::string_view name, const Trace& trace, std::int32_t slots) {
    const auto policy = make_policy(name, trace.setting(slots));
    testing::Layer layer(kExperts, slots);
    std::int64_t sum = 0;
    for (std::size_t token = 0; token < trace.tokens.size(); ++token) {
        sum += layer.serve(*policy, static_cast<std::int64_t>(token), trace.tokens[token]);
    }
    return sum;
}

TEST_P(EveryKind, RepeatsItself) {
    const Trace trace(kSeed);
    EXPECT_EQ(hits(GetParam().name, trace, 10), hits(GetParam().name, trace, 10));
}

TEST_P(EveryKind, HitsNoMoreThanBeladyAndMissesOnlyOnceWithRoomForAll) {
    const Trace trace(kSeed);
    for (const std::int32_t slots : {1, 4, 10, 20}) {
        EXPECT_LE(hits(GetParam().name, trace, slots), hits("belady", trace, slots)) << slots << " slots";
    }
    const auto used =
        std::count_if(trace.profile.begin(), trace.profile.end(), [](float u) { return u > 0; });
    EXPECT_EQ(hits(GetParam().name, trace, kExperts), kTokens * kUsed - used);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryKind,
                         ::testing::ValuesIn(policy_kinds().begin(), policy_kinds().end()),
                         [](const auto& kind) { return std::string(kind.param.name); });

/// The most hits of any sequence of decisions: a search over all sets of residents.
std::int64_t most_hits(const std::vector<std::vector<std::int32_t>>& tokens, int experts, int slots) {
    constexpr int kUnreachable = -1;
    std::vector<int> best(std::size_t{1} << experts, kUnreachable);
    best[0] = 0;
    for (const auto& token : tokens) {
        unsigned used = 0;
        for (const std::int32_t expert : token) used |= 1u << expert;
        std::vector<int> next(best.size(), kUnreachable);
        for (unsigned held = 0; held < best.size(); ++held) {
            if (best[held] == kUnreachable) continue;
            const int value = best[held] + __builtin_popcount(held & used);
            const unsigned reachable = held | used;
            for (unsigned kept = reachable;; kept = (kept - 1) & reachable) {
                if (__builtin_popcount(kept) <= slots) next[kept] = std::max(next[kept], value);
                if (kept == 0) break;
            }
        }
        best = std::move(next);
    }
    return *std::max_element(best.begin(), best.end());
}

TEST(BeladyTest, HasAllHitsThereCanBe) {
    constexpr int kFewExperts = 7;
    for (std::uint64_t seed = kSeed; seed < kSeed + 20; ++seed) {
        testing::RandomRouting routing(seed, kFewExperts, 2);
        std::vector<std::vector<std::int32_t>> tokens;
        std::vector<std::vector<std::int64_t>> future(kFewExperts);
        for (std::int64_t token = 0; token < 30; ++token) {
            tokens.push_back(routing.next());
            for (const std::int32_t e : tokens.back()) future[static_cast<std::size_t>(e)].push_back(token);
        }
        for (const int slots : {1, 2, 3, 5}) {
            const auto policy =
                make_policy("belady", {.experts = kFewExperts, .slots = slots, .future = future});
            testing::Layer layer(kFewExperts, slots);
            std::int64_t sum = 0;
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                sum += layer.serve(*policy, static_cast<std::int64_t>(i), tokens[i]);
            }
            EXPECT_EQ(sum, most_hits(tokens, kFewExperts, slots)) << "seed " << seed << ", slots " << slots;
        }
    }
}

TEST(AgeingTest, ACountHalvesWithItsHalfLifeAndSurvivesLongRuns) {
    for (const std::string_view name : {"lfu", "admit"}) {
        const auto policy = make_policy(name, {.experts = 2, .slots = 1});
        policy->used(0, 0, false);
        EXPECT_NEAR(policy->worth(0, 128), 0.5, 1e-12);
        for (std::int64_t token = 0; token <= 200'000; ++token) policy->used(1, token, false);
        const double steady = 1.0 / (1.0 - std::exp2(-1.0 / 128.0));  // the sum of all weights
        EXPECT_NEAR(policy->worth(1, 200'000), steady, 1e-6 * steady);
        EXPECT_EQ(policy->worth(0, 200'000), 0.0);
        policy->used(0, 100'000'000, false);  // a pause in which all is forgotten
        EXPECT_EQ(policy->worth(0, 100'000'000), 1.0);
        EXPECT_EQ(policy->worth(1, 100'000'000), 0.0);
    }
}

TEST(AdmitTest, RemembersTheLastUsesHoweverLongItRuns) {
    const auto policy = make_policy("admit", {.experts = 4, .slots = 0});
    for (const std::int64_t start : {std::int64_t{0}, (std::int64_t{1} << 30) - 5, std::int64_t{1} << 40}) {
        policy->used(1, start, false);
        policy->used(2, start + 7, false);
        policy->used(1, start + 10, false);
        EXPECT_TRUE(policy->admits(1, start + 10)) << start;
        EXPECT_TRUE(policy->admits(1, start + 63)) << start;
        EXPECT_FALSE(policy->admits(1, start + 64)) << start;
        EXPECT_FALSE(policy->admits(2, start + 10)) << start;
    }
}

TEST(AdmitTest, WantsTwoUsesIn64TokensOnceSlotsAreFull) {
    const auto policy = make_policy("admit", {.experts = 4, .slots = 1});
    policy->used(0, 0, false);
    EXPECT_TRUE(policy->admits(0, 0)) << "a slot is free";
    policy->inserted(0, 0);
    EXPECT_FALSE(policy->admits(0, 0));
    policy->used(1, 10, false);
    EXPECT_FALSE(policy->admits(1, 10));
    policy->used(1, 73, false);
    EXPECT_TRUE(policy->admits(1, 73));
    EXPECT_FALSE(policy->admits(1, 74)) << "the first use is 64 tokens ago";
}

TEST(AdmitTest, ReplacesNobodyWhoWasUsedMore) {
    const auto policy = make_policy("admit", {.experts = 3, .slots = 2});
    const std::vector<std::int32_t> residents{0, 1};
    for (const std::int64_t token : {0, 1, 2}) policy->used(0, token, true);
    for (const std::int64_t token : {3, 4, 5}) policy->used(1, token, true);
    for (const std::int64_t token : {6, 7}) policy->used(2, token, false);
    EXPECT_EQ(policy->victim(residents, 2, 7), -1);
    policy->used(2, 8, false);
    EXPECT_EQ(policy->victim(residents, 2, 8), 0) << "as many uses, and later ones";
}

}  // namespace
}  // namespace coterie::expert_cache
