#include "kernels/cpu/route.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/split_mix.h"

namespace coterie::cpu {
namespace {

struct Routed {
    std::vector<std::int32_t> experts;
    std::vector<float> weights;
};

Routed run(const Routing& routing, const std::vector<float>& logits, const std::vector<float>& bias = {}) {
    Routed result{std::vector<std::int32_t>(static_cast<std::size_t>(routing.used)),
                  std::vector<float>(static_cast<std::size_t>(routing.used))};
    std::vector<float> scratch(static_cast<std::size_t>(2 * routing.experts + routing.groups));
    route(kernels(), routing, logits.data(), bias.empty() ? nullptr : bias.data(), scratch.data(),
          result.experts.data(), result.weights.data());
    return result;
}

/// The same in double precision, by sorting everything.
struct Exact {
    std::vector<std::size_t> experts;
    std::vector<double> weights;
};

Exact exact(const Routing& routing, const std::vector<float>& logits, const std::vector<float>& bias) {
    const std::size_t n = logits.size();
    std::vector<double> p(logits.begin(), logits.end());
    if (routing.gating == Gating::Softmax) {
        double sum = 0.0;
        for (double& x : p) sum += x = std::exp(x);
        for (double& x : p) x /= sum;
    } else if (routing.gating == Gating::Sigmoid) {
        for (double& x : p) x = 1.0 / (1.0 + std::exp(-x));
    }
    std::vector<double> s = p;
    for (std::size_t e = 0; e < n && !bias.empty(); ++e) s[e] += static_cast<double>(bias[e]);
    if (routing.groups > 1) {
        const std::size_t size = n / static_cast<std::size_t>(routing.groups);
        std::vector<std::pair<double, std::size_t>> groups;
        for (std::size_t g = 0; g * size < n; ++g) {
            std::vector<double> part(s.begin() + static_cast<std::ptrdiff_t>(g * size),
                                     s.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
            std::sort(part.rbegin(), part.rend());
            groups.emplace_back(-(part[0] + (size > 1 ? part[1] : 0.0)), g);
        }
        std::sort(groups.begin(), groups.end());
        for (std::size_t i = static_cast<std::size_t>(routing.groups_used); i < groups.size(); ++i) {
            for (std::size_t e = 0; e < size; ++e) s[groups[i].second * size + e] = -1e300;
        }
    }
    Exact result;
    result.experts.resize(n);
    std::iota(result.experts.begin(), result.experts.end(), std::size_t{0});
    std::stable_sort(result.experts.begin(), result.experts.end(),
                     [&](std::size_t a, std::size_t b) { return s[a] > s[b]; });
    result.experts.resize(static_cast<std::size_t>(routing.used));
    double sum = 0.0;
    for (const std::size_t e : result.experts) result.weights.push_back(p[e]);
    if (routing.gating == Gating::SoftmaxOfSelected) {
        for (double& w : result.weights) w = std::exp(w);
    }
    for (const double w : result.weights) sum += w;
    const bool divide = routing.normalise || routing.gating == Gating::SoftmaxOfSelected;
    for (double& w : result.weights) w = (divide ? w / sum : w) * static_cast<double>(routing.scale);
    return result;
}

TEST(RouteTest, AgreesWithSortingEverything) {
    SplitMix64 random(7);
    for (int round = 0; round < 400; ++round) {
        Routing routing;
        routing.gating = static_cast<Gating>(round % 3);
        routing.groups = round % 4 == 0 ? 4 : 1;
        routing.groups_used = routing.groups == 4 ? 2 : 1;
        routing.experts = 4 * (1 + static_cast<std::int64_t>(random.next() % 20)) * 2;
        routing.used =
            1 + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(routing.experts / 2));
        routing.normalise = random.next() % 2 == 0;
        routing.scale = random.next() % 2 == 0 ? 1.0f : 2.5f;
        std::vector<float> logits;
        std::vector<float> bias;
        for (std::int64_t e = 0; e < routing.experts; ++e) {
            logits.push_back(8.0f * random.next_float() - 4.0f);
            bias.push_back(0.2f * random.next_float());
        }
        if (round % 2 == 0) bias.clear();
        const Routed got = run(routing, logits, bias);
        const Exact want = exact(routing, logits, bias);
        for (std::size_t i = 0; i < want.experts.size(); ++i) {
            EXPECT_EQ(got.experts[i], static_cast<std::int32_t>(want.experts[i]))
                << "round " << round << " rank " << i;
            EXPECT_NEAR(got.weights[i], want.weights[i], 1e-5 * (1.0 + want.weights[i])) << "round " << round;
        }
    }
}

TEST(RouteTest, TiesGoToTheLowerIndex) {
    const Routing routing{.gating = Gating::Softmax, .experts = 8, .used = 3};
    EXPECT_EQ(run(routing, std::vector<float>(8, 1.0f)).experts, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(RouteTest, IdsAreValidAndDistinctWhateverTheLogits) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    for (const float value : {nan, inf, -inf, 3e38f, -3e38f}) {
        for (const std::int64_t groups : {1, 4}) {
            for (int gating = 0; gating < 3; ++gating) {
                const Routing routing{.gating = static_cast<Gating>(gating),
                                      .experts = 16,
                                      .used = 8,
                                      .groups = groups,
                                      .groups_used = groups == 1 ? 1 : 2};
                for (std::vector<float> logits :
                     {std::vector<float>(16, value), std::vector<float>(16, 0.0f)}) {
                    logits[5] = value;
                    const Routed got = run(routing, logits);
                    const std::set<std::int32_t> distinct(got.experts.begin(), got.experts.end());
                    EXPECT_EQ(distinct.size(), 8u);
                    EXPECT_GE(*distinct.begin(), 0);
                    EXPECT_LT(*distinct.rbegin(), 16);
                }
            }
        }
    }
}

}  // namespace
}  // namespace coterie::cpu
