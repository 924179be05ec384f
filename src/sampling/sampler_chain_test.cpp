#include "sampling/sampler_chain.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace coterie {
namespace {

constexpr std::int64_t kSeed = 42;

/// Filters off: the draw follows the softmax of the logits.
SamplingOptions plain() { return {.seed = kSeed, .temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

std::vector<int> draw_counts(SamplerChain& chain, const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(chain.sample(logits))];
    return counts;
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& probabilities) {
    const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double expected = draws * probabilities[i];
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
}

TEST(SamplerChain, DrawsFollowTheProbabilities) {
    const std::vector<double> probabilities{0.4, 0.05, 0.25, 0.2, 0.1};
    std::vector<float> logits;
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    SamplerChain chain(plain(), 5);
    // 4 degrees of freedom: 99.9 % of correct generators stay below 18.5.
    EXPECT_LT(chi_square(draw_counts(chain, logits, 100'000), probabilities), 18.5);
}

TEST(SamplerChain, AHugeTemperatureWithoutFiltersIsUniform) {
    SamplingOptions options = plain();
    options.temperature = 1e6f;
    SamplerChain chain(options, 8);
    const std::vector<int> counts = draw_counts(chain, {5, 4, 3, 0, 0, 0, 0, 0}, 80'000);
    // 7 degrees of freedom: 24.3 at 99.9 %.
    EXPECT_LT(chi_square(counts, std::vector<double>(8, 0.125)), 24.3);
}

TEST(SamplerChain, DefaultFiltersComeBeforeTheTemperature) {
    SamplingOptions options;
    options.seed = kSeed;
    options.temperature = 1e6f;
    SamplerChain chain(options, 4);
    // 0.652, 0.240, 0.088, 0.004 of the whole: 0.95 is reached by the third.
    const std::vector<int> counts = draw_counts(chain, {5, 4, 3, 0}, 3000);
    EXPECT_EQ(counts[3], 0);
    EXPECT_LT(chi_square({counts[0], counts[1], counts[2]}, std::vector<double>(3, 1.0 / 3)), 13.8);
    EXPECT_EQ(chain.candidates().size(), 3u);
}

TEST(SamplerChain, TemperatureZeroIsTheLowestIdOfTheHighest) {
    SamplingOptions options;
    options.temperature = 0;
    options.xtc_probability = 1;
    options.typical_p = 0.1f;
    for (const std::int64_t mirostat : {0, 1, 2}) {
        options.mirostat = mirostat;
        SamplerChain chain(options, 4);
        EXPECT_EQ(chain.sample(std::vector<float>{1, 5, 5, 2}), 1);
    }
}

TEST(SamplerChain, GreedyStillHeedsBiasAndPenalties) {
    SamplerChain chain({.temperature = 0, .repeat_penalty = 2, .logit_bias = {{3, 10}}}, 4);
    const std::vector<float> logits{1, 5, 4, -6};
    EXPECT_EQ(chain.sample(logits), 1);
    chain.accept(1);
    EXPECT_EQ(chain.sample(logits), 2);
    SamplerChain biased({.temperature = 0, .logit_bias = {{3, 20}}}, 4);
    EXPECT_EQ(biased.sample(logits), 3);
}

TEST(SamplerChain, TheSameSeedGivesTheSameTokens) {
    std::vector<float> logits(1000);
    std::iota(logits.begin(), logits.end(), -900.0f);
    for (float& logit : logits) logit *= 0.01f;
    SamplingOptions options;
    options.seed = kSeed;
    options.xtc_probability = 0.5f;
    options.xtc_threshold = 0.02f;
    options.dry_multiplier = 1;
    options.repeat_penalty = 1.1f;
    const auto tokens = [&](const SamplingOptions& used) {
        SamplerChain chain(used, 1000);
        std::vector<std::int32_t> drawn;
        for (int i = 0; i < 200; ++i) {
            drawn.push_back(chain.sample(logits));
            chain.accept(drawn.back());
        }
        return drawn;
    };
    const auto first = tokens(options);
    EXPECT_EQ(first, tokens(options));
    options.seed = kSeed + 1;
    EXPECT_NE(first, tokens(options));
}

TEST(SamplerChain, NumbersOfASeedAreTheSameEverywhere) {
    // The 10,000th value of the engine with its default seed is fixed by the C++ standard.
    Random random(5489);
    double last = 0;
    for (int i = 0; i < 10'000; ++i) last = random.uniform();
    EXPECT_EQ(last, static_cast<double>(9981545732273789042ull >> 11) * 0x1p-53);
}

TEST(SamplerChain, ARandomSeedCanBeReadAndUsedAgain) {
    const std::vector<float> logits(1000, 0.0f);
    for (const std::int64_t seed : {std::int64_t{-1}, std::int64_t{4294967295}}) {
        SamplingOptions options = plain();
        options.seed = seed;
        SamplerChain first(options, 1000);
        EXPECT_NE(first.seed(), 4294967295u);
        options.seed = first.seed();
        SamplerChain second(options, 1000);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(first.sample(logits), second.sample(logits));
    }
}

TEST(SamplerChain, WindowZeroIsNoPenalty) {
    const std::vector<float> logits{1, 2, 3};
    const auto probabilities = [&](float penalty, std::int64_t window) {
        SamplingOptions options = plain();
        options.repeat_penalty = penalty;
        options.repeat_last_n = window;
        SamplerChain chain(options, 3);
        chain.accept(std::vector<std::int32_t>{2, 1, 2});
        chain.sample(logits);
        std::vector<float> result;
        for (const Candidate& candidate : chain.candidates().items()) result.push_back(candidate.probability);
        return result;
    };
    EXPECT_EQ(probabilities(1.3f, 0), probabilities(1.0f, 64));
    EXPECT_NE(probabilities(1.3f, -1), probabilities(1.0f, 64));
}

TEST(SamplerChain, TheOrderIsFollowed) {
    const std::vector<float> logits{1.2f, 1, 0.9f, -2};
    SamplingOptions options = plain();
    options.temperature = 0.1f;
    options.min_p = 0.5f;
    options.samplers = parse_sampler_order("min_p;temperature");
    SamplerChain filter_first(options, 4);
    filter_first.sample(logits);
    EXPECT_EQ(filter_first.candidates().size(), 3u);
    options.samplers = parse_sampler_order("temperature;min_p");
    SamplerChain temperature_first(options, 4);
    temperature_first.sample(logits);
    EXPECT_EQ(temperature_first.candidates().size(), 1u);
}

TEST(SamplerChain, AnEmptyOrderIsAPlainDraw) {
    SamplingOptions options;
    options.seed = kSeed;
    options.samplers = {};
    SamplerChain chain(options, 2);
    const std::vector<float> logits{std::log(0.9f), std::log(0.1f)};
    EXPECT_LT(chi_square(draw_counts(chain, logits, 10'000), {0.9, 0.1}), 10.8);
}

TEST(SamplerChain, ForbiddenTokensAreNeverDrawn) {
    SamplingOptions options = plain();
    options.logit_bias = {{0, -std::numeric_limits<float>::infinity()}};
    SamplerChain chain(options, 3);
    EXPECT_EQ(draw_counts(chain, {9, 1, -INFINITY}, 1000)[1], 1000);
}

TEST(SamplerChain, NumbersThatAreNoneAreErrors) {
    SamplerChain chain(plain(), 3);
    EXPECT_THROW(chain.sample(std::vector<float>{1, NAN, 2}), Error);
    EXPECT_THROW(SamplerChain({.top_p = 2}, 3), Error);
    EXPECT_THROW(SamplerChain({.logit_bias = {{3, 1}}}, 3), Error);
}

TEST(SamplerChain, MirostatTakesThePlaceOfTheFilters) {
    SamplingOptions options;
    options.seed = kSeed;
    options.mirostat_tau = 6;  // what each of 64 equal tokens surprises, so that mu stays
    options.top_k = 1;
    for (const std::int64_t version : {1, 2}) {
        options.mirostat = version;
        SamplerChain chain(options, 64);
        const std::vector<int> counts = draw_counts(chain, std::vector<float>(64, 1.0f), 6400);
        EXPECT_LT(chi_square(counts, std::vector<double>(64, 1.0 / 64)),
                  104);  // 63 degrees of freedom, 99.9 %
    }
}

TEST(SamplerChain, DryUsesItsBreakers) {
    SamplingOptions options{.temperature = 0, .dry_multiplier = 5};
    const std::vector<std::int32_t> prompt{1, 2, 3, 0, 1, 2};
    const std::vector<float> logits{0, 0, 0, 1};
    SamplerChain lowers(options, 4);
    lowers.accept(prompt);
    EXPECT_EQ(lowers.sample(logits), 0);
    SamplerChain breaks(options, 4, {2});
    breaks.accept(prompt);
    EXPECT_EQ(breaks.sample(logits), 3);
}

/// What the samplers never look at is not loaded; that must not be seen. A chain whose first sampler keeps
/// everything that its second one wants has to load all.
TEST(SamplerChain, LeavingOutTheRestOfTheVocabularyIsNotSeen) {
    Random random(5);
    std::vector<float> logits(5000);
    SamplingOptions quick;
    quick.seed = kSeed;
    quick.logit_bias = {{17, 4}, {4000, -INFINITY}, {4001, -3}};
    SamplingOptions slow = quick;
    slow.top_n_sigma = 1e6f;
    for (const float temperature : {0.0f, 0.8f}) {
        quick.temperature = slow.temperature = temperature;
        SamplerChain few(quick, 5000);
        SamplerChain all(slow, 5000);
        for (int i = 0; i < 200; ++i) {
            for (float& logit : logits) logit = std::floor(static_cast<float>(random.uniform()) * 64) / 8;
            ASSERT_EQ(few.sample(logits), all.sample(logits));
        }
    }
}

}  // namespace
}  // namespace coterie
