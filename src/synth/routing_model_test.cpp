#include "synth/routing_model.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "synth/portable_math.h"
#include "synth/router.h"

namespace coterie::synth {
namespace {

TEST(PortableMath, AgreesWithTheLibrary) {
    for (const double x : {1e-9, 0.3, 0.70710678, 1.0, 1.5, 127.0, 3e8}) {
        EXPECT_NEAR(natural_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x)))) << x;
    }
    for (const double x : {-30.0, -1.0, -0.1, 0.0, 0.34, 5.5, 40.0}) {
        EXPECT_NEAR(exponential(x) / std::exp(x), 1.0, 1e-14) << x;
    }
    EXPECT_NEAR(power(128.0, -1.2), std::pow(128.0, -1.2), 1e-16);
}

TEST(PortableMath, BellDrawsHaveMeanZeroAndVarianceOne) {
    SplitMix64 random(7);
    constexpr int kDraws = 200000;
    double sum = 0.0;
    double squares = 0.0;
    for (int i = 0; i < kDraws; ++i) {
        const double value = bell_draw(random);
        sum += value;
        squares += value * value;
    }
    EXPECT_NEAR(sum / kDraws, 0.0, 0.01);
    EXPECT_NEAR(squares / kDraws, 1.0, 0.01);
}

TEST(PowerLaw, FollowsTheExponentBehindTheCapAndSumsToTheExpertsUsed) {
    for (const double skew : {0.0, 0.5, 1.0, 1.2, 3.0}) {
        const auto shares = power_law_popularity(128, 8, skew);
        EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 8.0, 1e-9) << skew;
        EXPECT_LE(shares[0], kHighestShare) << skew;
        EXPECT_NEAR(shares[127] / shares[63], std::pow(2.0, -skew), 1e-9) << skew;
    }
}

TEST(PowerLaw, CapsManyRanksWhereMostExpertsAreUsed) {
    const auto shares = power_law_popularity(8, 7, 2.0);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 7.0, 1e-9);
    EXPECT_EQ(shares[4], kHighestShare);
    EXPECT_LT(shares[5], kHighestShare);
}

struct ModelCase {
    std::int64_t experts, used;
    double skew;
    std::int64_t topics;
};

class CalibratedModel : public testing::TestWithParam<ModelCase> {};

TEST_P(CalibratedModel, ChoosesEachExpertAsOftenAsThePowerLawSays) {
    const auto [experts, used, skew, topics] = GetParam();
    const RoutingModel model({experts, used, skew, topics, 1.0, 5});
    constexpr int kTokens = 20000;
    SplitMix64 random(99);  // other tokens than the calibration's
    std::vector<float> logits(static_cast<std::size_t>(2 * experts));
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(used));
    std::vector<double> shares(static_cast<std::size_t>(experts));
    for (int token = 0; token < kTokens; ++token) {
        model.draw(random, token % topics, logits, chosen);
        for (const std::int32_t rank : chosen) shares[static_cast<std::size_t>(rank)] += 1.0 / kTokens;
    }
    const auto wanted = power_law_popularity(experts, used, skew);
    for (std::size_t r = 0; r < shares.size(); ++r) {
        EXPECT_NEAR(shares[r], wanted[r], 0.004 + 0.08 * wanted[r] * (1.0 - wanted[r])) << "rank " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(Routers, CalibratedModel,
                         testing::Values(ModelCase{128, 8, 1.0, 1}, ModelCase{128, 8, 0.5, 16},
                                         ModelCase{8, 2, 1.2, 1}, ModelCase{32, 4, 0.0, 4},
                                         ModelCase{64, 8, 2.0, 1}));

TEST(RoutingModel, WithoutSkewAndTopicsAllExpertsAreAlike) {
    const RoutingModel model({16, 2, 0.0, 1, 1.0, 5});
    for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(model.fixed_part(rank, 0), 0.0f);
}

TEST(ReservedPart, RouterRowsReadTheWishedLogitsFromTheEmbedding) {
    constexpr std::int64_t kTopics = 64;
    const RoutingModel model({16, 2, 1.0, kTopics, 1.0, 5});
    for (const DataType type : {DataType::Q4_K, DataType::IQ1_S, DataType::Q8_0, DataType::F32}) {
        const ReservedPart reserved(type, kTopics, 3);
        std::vector<float> row(256);
        for (int rank = 0; rank < 16; rank += 5) {
            reserved.write_router_row(model, rank, row);
            for (std::int64_t t = 0; t < kTopics; ++t) {
                double logit = 0.0;
                for (std::size_t i = 0; i < row.size(); ++i) {
                    logit += static_cast<double>(row[i]) * kReservedNormWeight * reserved.embedding(t)[i];
                }
                EXPECT_NEAR(logit, model.fixed_part(rank, t), 1e-5) << "topic " << t;
            }
        }
    }
}

TEST(PopularityRanks, AreAPermutationThatTheSeedDecides) {
    SplitMix64 first(1);
    SplitMix64 other(2);
    auto ranks = popularity_ranks(128, first);
    EXPECT_NE(ranks, popularity_ranks(128, other));
    std::sort(ranks.begin(), ranks.end());
    for (std::int64_t i = 0; i < 128; ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace coterie::synth
