#include "kernels/reference/transcendental.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace coterie::reference {
namespace {

double ulp_of(double exact) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::ldexp(1.0, exponent - 24);
}

/// The largest error in units of the last place, over every 1009th float of [low, high] (same sign, |low| <
/// |high|).
template <typename Function, typename Exact>
double largest_error(float low, float high, Function function, Exact exact) {
    double largest = 0.0;
    const auto last = std::bit_cast<std::uint32_t>(high);
    for (auto bits = std::bit_cast<std::uint32_t>(low); bits <= last; bits += 1009) {
        const float x = std::bit_cast<float>(bits);
        const double truth = exact(static_cast<double>(x));
        largest = std::max(largest, std::fabs(function(x) - truth) / ulp_of(truth));
    }
    return largest;
}

double exact_exp(double x) { return std::exp(x); }
double exact_softplus(double x) { return std::log1p(std::exp(x)); }

TEST(Exp, IsWithinOneUlpOverItsRange) {
    const double below = largest_error(-0.0f, kExpUnderflow, exp, exact_exp);
    const double above = largest_error(0.0f, kExpOverflow, exp, exact_exp);
    EXPECT_LT(below, 1.0);
    EXPECT_LT(above, 1.0);
    RecordProperty("largest_error_milli_ulp", static_cast<int>(1000 * std::max(below, above)));
}

TEST(Exp, IsExactAtZero) {
    EXPECT_EQ(exp(0.0f), 1.0f);
    EXPECT_EQ(exp(-0.0f), 1.0f);
}

TEST(Exp, EndsInZeroInfinityAndNan) {
    EXPECT_EQ(exp(-87.4f), 0.0f);
    EXPECT_EQ(exp(-INFINITY), 0.0f);
    EXPECT_GE(exp(kExpUnderflow), std::numeric_limits<float>::min());
    EXPECT_TRUE(std::isfinite(exp(kExpOverflow)));
    EXPECT_EQ(exp(std::nextafter(kExpOverflow, INFINITY)), INFINITY);
    EXPECT_EQ(exp(INFINITY), INFINITY);
    EXPECT_TRUE(std::isnan(exp(NAN)));
    // A signalling NaN with payload in the bits that the exponent's arithmetic touches.
    EXPECT_TRUE(std::isnan(exp(std::bit_cast<float>(0x7f800001u))));
}

TEST(Exp, NeverFalls) {
    float previous = 0.0f;
    for (float x = -88.0f; x < 89.0f; x += 0.0007f) {
        EXPECT_GE(exp(x), previous) << x;
        previous = exp(x);
    }
}

TEST(Softplus, IsWithinThreeUlp) {
    EXPECT_LT(largest_error(0.0f, kSoftplusLinear, softplus, exact_softplus), 3.0);
    EXPECT_LT(largest_error(-0.0f, -87.0f, softplus, exact_softplus), 3.0);
}

TEST(Silu, VanishesForLargeNegativeArguments) {
    EXPECT_EQ(silu(-200.0f), 0.0f);
    EXPECT_EQ(silu(200.0f), 200.0f);
    EXPECT_EQ(sigmoid(-INFINITY), 0.0f);
    EXPECT_EQ(sigmoid(INFINITY), 1.0f);
}

}  // namespace
}  // namespace coterie::reference
