#include "sampling/log_probabilities.h"

#include <cmath>
#include <gtest/gtest.h>

#include "sampling/random.h"

namespace coterie {
namespace {

TEST(LogProbabilities, AreTheLogSoftmax) {
    const std::vector<float> logits{0, std::log(2.0f), std::log(5.0f), -INFINITY};
    const LogProbabilities log_probabilities(logits);
    EXPECT_NEAR(log_probabilities[0], std::log(1.0 / 8), 1e-7);
    EXPECT_NEAR(log_probabilities[2], std::log(5.0 / 8), 1e-7);
    EXPECT_EQ(log_probabilities[3], -INFINITY);
}

TEST(LogProbabilities, AddUpToOneOverALargeVocabulary) {
    Random random(2);
    std::vector<float> logits(151'936);
    for (float& logit : logits) logit = 1000 + static_cast<float>(random.uniform()) * 30;
    const LogProbabilities log_probabilities(logits);
    double sum = 0;
    for (std::int32_t token = 0; token < 151'936; ++token) sum += std::exp(log_probabilities[token]);
    EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(LogProbabilities, TopIsSortedAndTiesGoToLowerIds) {
    const std::vector<float> logits{1, 3, 2, 3};
    const LogProbabilities log_probabilities(logits);
    const auto top = log_probabilities.top(3);
    ASSERT_EQ(top.size(), 3u);
    EXPECT_EQ(top[0].id, 1);
    EXPECT_EQ(top[1].id, 3);
    EXPECT_EQ(top[2].id, 2);
    EXPECT_EQ(top[1].log_probability, log_probabilities[3]);
    EXPECT_TRUE(log_probabilities.top(0).empty());
    EXPECT_EQ(log_probabilities.top(100).size(), 4u);
}

}  // namespace
}  // namespace coterie
