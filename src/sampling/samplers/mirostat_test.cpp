#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/samplers/fixed_logits.h"

namespace coterie {
namespace {

using namespace testing_support;
using testing::ElementsAre;

TEST(MirostatV2, KeepsSurprisesUpToMu) {
    MirostatV2 sampler(1, 0.1f);  // mu = 2 bits: probabilities down to 1/4
    EXPECT_THAT(kept_ids(sampler, logits_of({0.1, 0.35, 0.25001, 0.29999})), ElementsAre(1, 3, 2));
}

TEST(MirostatV2, AlwaysKeepsOne) {
    MirostatV2 sampler(0, 0.1f);
    EXPECT_THAT(kept_ids(sampler, logits_of({0.1, 0.3, 0.2, 0.4})), ElementsAre(3));
}

TEST(MirostatV2, MuFallsByTheExcessSurprise) {
    MirostatV2 sampler(1, 0.5f);
    kept_ids(sampler, logits_of({0.5, 0.25001, 0.24999}));  // keeps 3/4 of the probability
    sampler.observe_draw(1.0 / 3);                          // a quarter before the truncation: 2 bits
    EXPECT_NEAR(sampler.mu(), 2 - 0.5 * (2 - 1), 1e-4);
}

TEST(MirostatV1, KeepsWhatTheZipfFitGives) {
    // p_i ~ 1 / i^2 fits exactly: s = 2, epsilon = 1, N = 200, mu = 6: k = sqrt(64 / (1 - 1/200)) = 8.02.
    std::vector<float> logits;
    for (int i = 1; i <= 200; ++i) logits.push_back(-2 * std::log(static_cast<float>(i)));
    MirostatV1 sampler(3, 0.1f);
    EXPECT_EQ(kept_ids(sampler, logits).size(), 8u);
}

TEST(MirostatV1, FlatDistributionsKeepAll) {
    MirostatV1 sampler(5, 0.1f);
    EXPECT_EQ(kept_ids(sampler, std::vector<float>(50, 1.0f)).size(), 50u);
    EXPECT_EQ(kept_ids(sampler, {1.0f}).size(), 1u);
}

template <typename T>
double mean_surprise(float tau) {
    std::vector<float> logits;
    for (int i = 1; i <= 1000; ++i) logits.push_back(-1.1f * std::log(static_cast<float>(i)));
    T sampler(tau, 0.1f);
    Random random(3);
    Candidates candidates;
    candidates.load(logits);
    candidates.softmax();
    std::vector<float> original;
    for (const Candidate& candidate : candidates.items()) original.push_back(candidate.probability);
    double surprise = 0;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
        candidates.load(logits);
        sampler.apply(candidates, random);
        candidates.softmax();
        double left = random.uniform();
        std::size_t drawn = 0;
        while (drawn + 1 < candidates.size() && left >= candidates[drawn].probability) {
            left -= candidates[drawn++].probability;
        }
        sampler.observe_draw(candidates[drawn].probability);
        surprise -= std::log2(original[static_cast<std::size_t>(candidates[drawn].id)]);
    }
    return surprise / kDraws;
}

TEST(Mirostat, ReachesItsTarget) {
    EXPECT_NEAR(mean_surprise<MirostatV2>(4), 4, 0.05);
    EXPECT_NEAR(mean_surprise<MirostatV2>(5), 5, 0.05);
    EXPECT_NEAR(mean_surprise<MirostatV1>(4), 4, 0.05);
}

}  // namespace
}  // namespace coterie
