#include "cli/perplexity.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace coterie::cli {
namespace {

TEST(PerplexityTest, LikelihoodIsTheSoftmax) {
    const float logits[] = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
    EXPECT_NEAR(negative_log_likelihood(logits, 0), -std::log(1.0 / 8.0), 1e-6);
    EXPECT_NEAR(negative_log_likelihood(logits, 2), -std::log(5.0 / 8.0), 1e-6);
}

TEST(PerplexityTest, LargeLogitsDoNotOverflow) {
    const float logits[] = {10000.0f, 9999.0f, -10000.0f};
    EXPECT_NEAR(negative_log_likelihood(logits, 0), std::log1p(std::exp(-1.0)), 1e-12);
    EXPECT_NEAR(negative_log_likelihood(logits, 2), 20000.0 + std::log1p(std::exp(-1.0)), 1e-9);
}

TEST(PerplexityTest, NotANumberStaysOne) {
    const float logits[] = {1.0f, std::numeric_limits<float>::quiet_NaN(), 2.0f};
    EXPECT_TRUE(std::isnan(negative_log_likelihood(logits, 0)));
}

TEST(PerplexityTest, IsTheExponentialOfTheMean) {
    PerplexityResult result;
    result.mean_nll = std::log(15.0);
    EXPECT_NEAR(result.perplexity(), 15.0, 1e-12);
}

}  // namespace
}  // namespace coterie::cli
