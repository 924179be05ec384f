#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>

#include "kernels/cpu/ops_testing.h"

namespace coterie::cpu {
namespace {

using namespace testing;

using Doubles = std::vector<double>;

/// One op in the form out = f(a, b), all of n values; n is even where the op wants pairs.
struct Op {
    const char* name;
    void (*run)(const KernelTable& table, const float* a, const float* b, std::int64_t n, float* out);
    Doubles (*exact)(const Doubles& a, const Doubles& b);
    double tolerance;  ///< of |error| / max(|exact|, 0.01), for ordinary values
    bool may_be_in_place = true;
};

std::ostream& operator<<(std::ostream& out, const Op& op) { return out << op.name; }

template <typename Function>
Doubles each(const Doubles& a, const Doubles& b, Function function) {
    Doubles out(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) out[i] = function(a[i], b[i]);
    return out;
}

double exact_dot(const Doubles& a, const Doubles& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }

Doubles exact_softmax(const Doubles& a, const Doubles&) {
    const double maximum = *std::max_element(a.begin(), a.end());
    double sum = 0.0;
    for (const double x : a) sum += std::exp(x - maximum);
    Doubles out(a);
    for (double& x : out) x = std::exp(x - maximum) / sum;
    return out;
}

Doubles rotate(const Doubles& a, const Doubles& b, std::size_t step, std::size_t partner) {
    Doubles out(a);
    const std::size_t pairs = a.size() / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double x = a[i * step];
        const double y = a[i * step + partner];
        out[i * step] = x * b[i] - y * b[pairs + i];
        out[i * step + partner] = x * b[pairs + i] + y * b[i];
    }
    return out;
}

constexpr float kEpsilon = 1e-5f;

const Op kOps[] = {
    {"rms_norm",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         t.rms_norm(a, b, n, kEpsilon, out);
     },
     [](const Doubles& a, const Doubles& b) {
         const double r = 1.0 / std::sqrt(exact_dot(a, a) / static_cast<double>(a.size()) + kEpsilon);
         return each(a, b, [r](double x, double w) { return x * r * w; });
     },
     4e-7},
    {"rms_norm without weight",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.rms_norm(a, nullptr, n, kEpsilon, out);
     },
     [](const Doubles& a, const Doubles& b) {
         const double r = 1.0 / std::sqrt(exact_dot(a, a) / static_cast<double>(a.size()) + kEpsilon);
         return each(a, b, [r](double x, double) { return x * r; });
     },
     4e-7},
    {"l2_norm",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.l2_norm(a, n, kEpsilon, out);
     },
     [](const Doubles& a, const Doubles& b) {
         const double r = 1.0 / std::sqrt(exact_dot(a, a) + kEpsilon);
         return each(a, b, [r](double x, double) { return x * r; });
     },
     4e-7},
    {"add",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         t.add(a, b, n, out);
     },
     [](const Doubles& a, const Doubles& b) { return each(a, b, std::plus<double>()); }, 6e-8},
    {"multiply",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         t.multiply(a, b, n, out);
     },
     [](const Doubles& a, const Doubles& b) { return each(a, b, std::multiplies<double>()); }, 6e-8},
    {"add_scaled",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         std::copy(b, b + n, out);
         t.add_scaled(a, 0.3f, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double x, double y) { return static_cast<double>(0.3f) * x + y; });
     },
     6e-8, false},
    {"swiglu",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         t.swiglu(a, b, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double gate, double up) { return exact_silu(gate) * up; });
     },
     4e-7},
    {"swiglu_oai",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         // Both limits are met: values of up to 9.
         std::vector<float> gate(a, a + n);
         for (float& x : gate) x *= 3.0f;
         t.swiglu_oai(gate.data(), b, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double gate, double up) {
             const double g = std::min(static_cast<double>(static_cast<float>(gate) * 3.0f), 7.0);
             const double u = std::clamp(up, -7.0, 7.0);
             return g / (1.0 + std::exp(-1.702 * g)) * (u + 1.0);
         });
     },
     2e-6, false},
    {"silu",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.silu(a, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double x, double) { return exact_silu(x); });
     },
     3e-7},
    {"sigmoid",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.sigmoid(a, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double x, double) { return 1.0 / (1.0 + std::exp(-x)); });
     },
     3e-7},
    {"softplus",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.softplus(a, n, out);
     },
     [](const Doubles& a, const Doubles& b) {
         return each(a, b, [](double x, double) { return std::log1p(std::exp(x)); });
     },
     3e-7},
    {"softmax",
     [](const KernelTable& t, const float* a, const float*, std::int64_t n, float* out) {
         t.softmax(a, n, out);
     },
     exact_softmax, 4e-7},
    {"dot_f32",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         std::fill(out, out + n, t.dot_f32(a, b, n));
     },
     [](const Doubles& a, const Doubles& b) { return Doubles(a.size(), exact_dot(a, b)); }, 1e-3, false},
    {"rope_adjacent",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         std::copy(a, a + n, out);
         t.rope_adjacent(out, b, b + n / 2, n / 2);
     },
     [](const Doubles& a, const Doubles& b) { return rotate(a, b, 2, 1); }, 1e-4, false},
    {"rope_halves",
     [](const KernelTable& t, const float* a, const float* b, std::int64_t n, float* out) {
         std::copy(a, a + n, out);
         t.rope_halves(out, b, b + n / 2, n / 2);
     },
     [](const Doubles& a, const Doubles& b) { return rotate(a, b, 1, a.size() / 2); }, 1e-4, false},
};

const std::int64_t kSizes[] = {1,  2,  7,  8,  9,  15,  16,  17,  18,  31,  32,
                               33, 40, 63, 64, 65, 100, 255, 256, 257, 2880};

class OpTest : public ::testing::TestWithParam<Op> {
  protected:
    std::vector<float> run(const KernelTable& table, const std::vector<float>& a,
                           const std::vector<float>& b) {
        GuardedFloats left(a);
        GuardedFloats right(b);
        GuardedFloats out(static_cast<std::int64_t>(a.size()));
        GetParam().run(table, left.data(), right.data(), static_cast<std::int64_t>(a.size()), out.data());
        return out.copy();
    }
};

TEST_P(OpTest, IsNearTheExactResult) {
    SplitMix64 random(kSeed);
    for (const std::int64_t n : kSizes) {
        const std::vector<float> a = random_values(Values::Ordinary, n, random);
        const std::vector<float> b = random_values(Values::Ordinary, n, random);
        const Doubles exact = GetParam().exact({a.begin(), a.end()}, {b.begin(), b.end()});
        const std::vector<float> out = run(scalar_table(), a, b);
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const double bound = GetParam().tolerance * std::max(std::fabs(exact[i]), 0.01);
            ASSERT_NEAR(out[i], exact[i], bound) << "value " << i << " of " << n;
        }
    }
}

TEST_P(OpTest, EveryInstructionSetGivesTheBitsOfTheLaw) {
    SplitMix64 random(kSeed);
    for (const Values kind : {Values::Ordinary, Values::Wide, Values::Special}) {
        for (const std::int64_t n : kSizes) {
            const std::vector<float> a = random_values(kind, n, random);
            const std::vector<float> b = random_values(kind, n, random);
            const std::vector<float> expected = run(scalar_table(), a, b);
            for (const KernelTable* table : vector_tables()) {
                ASSERT_TRUE(same_bits(expected, run(*table, a, b))) << table->name << ", n = " << n;
            }
        }
    }
}

TEST_P(OpTest, MayWriteOverItsInput) {
    if (!GetParam().may_be_in_place) return;
    SplitMix64 random(kSeed);
    for (const std::int64_t n : kSizes) {
        const std::vector<float> a = random_values(Values::Ordinary, n, random);
        const std::vector<float> b = random_values(Values::Ordinary, n, random);
        for (const InstructionSet set : kInstructionSets) {
            const KernelTable* table = kernels_for(set);
            if (!table) continue;
            GuardedFloats both(a);
            GetParam().run(*table, both.data(), b.data(), n, both.data());
            ASSERT_TRUE(same_bits(run(*table, a, b), both.copy())) << table->name << ", n = " << n;
        }
    }
}

std::string test_name(const ::testing::TestParamInfo<Op>& op) {
    std::string name = op.param.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, ::testing::ValuesIn(kOps), test_name);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> softmax(const std::vector<float>& x) {
    std::vector<float> out(x.size());
    kernels().softmax(x.data(), static_cast<std::int64_t>(x.size()), out.data());
    return out;
}

TEST(Softmax, TakesHugeAndInfiniteLogits) {
    EXPECT_EQ(softmax({3e38f, -3e38f, 3e38f}), (std::vector<float>{0.5f, 0.0f, 0.5f}));
    EXPECT_EQ(softmax({-kInfinity, 2.0f, -kInfinity}), (std::vector<float>{0.0f, 1.0f, 0.0f}));
    EXPECT_EQ(softmax({-1e30f}), (std::vector<float>{1.0f}));
}

TEST(Softmax, WithoutAnAnswerIsNan) {
    const std::vector<std::vector<float>> cases = {
        {NAN, 1.0f, 2.0f}, {1.0f, kInfinity}, std::vector<float>(40, -kInfinity)};
    for (const auto& logits : cases) {
        for (const float p : softmax(logits)) EXPECT_TRUE(std::isnan(p));
    }
}

TEST(SwigluOai, KeepsNanDespiteTheLimits) {
    const float gates[] = {NAN, 1.0f};
    const float ups[] = {1.0f, NAN};
    float out[2];
    kernels().swiglu_oai(gates, ups, 2, out);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[1]));
}

TEST(Softplus, LeavesLargeArgumentsUnchanged) {
    const float x[] = {20.5f, 1e30f, kInfinity, -kInfinity, -200.0f};
    float out[5];
    kernels().softplus(x, 5, out);
    EXPECT_EQ(std::vector<float>(out, out + 5), (std::vector<float>{20.5f, 1e30f, kInfinity, 0.0f, 0.0f}));
}

}  // namespace
}  // namespace coterie::cpu
