#include <gtest/gtest.h>

#include "kernels/cuda/normed_input_for_test.h"
#include "kernels/cuda/routing_for_test.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

constexpr std::int32_t kAlwaysFits = 768;  ///< into the shared memory of every GPU

struct Shape {
    cpu::Routing routing;
    std::int32_t width;
    bool selection_bias = false;
};

std::vector<Shape> shapes() {
    using cpu::Gating;
    return {{{Gating::Softmax, 128, 8, 1, 1, true, 1.0f}, 2048},
            {{Gating::SoftmaxOfSelected, 32, 4, 1, 1, false, 1.0f}, 2880},
            {{Gating::Sigmoid, 60, 6, 4, 2, true, 2.5f}, 768, true},
            {{Gating::Softmax, 512, 10, 1, 1, true, 1.0f}, 544},
            {{Gating::Softmax, 8, 2, 1, 1, true, 1.0f}, 4096},
            {{Gating::Softmax, 64, 6, 1, 1, true, 1.0f}, 1792},
            {{Gating::Softmax, 3, 3, 1, 1, false, 1.0f}, 33},
            {{Gating::Sigmoid, 5, 1, 1, 1, false, 1.0f}, 1}};
}

/// Norm, product and choice of `tokens` rows, three times with the same counters.
void expect_law(const Shape& shape, std::int32_t tokens, Values values, bool adds) {
    const std::int64_t experts = shape.routing.experts;
    if (!routes_normed(static_cast<std::int32_t>(experts), shape.width)) {
        EXPECT_GT(shape.width, kAlwaysFits);
        return;  // this GPU has too little shared memory, and the step takes two kernels
    }
    const NormedInputForTest input(tokens, shape.width, values, adds, kSeed);
    SplitMix64 random(kSeed + 1);
    const std::vector<float> weights = random_values(Values::Ordinary, experts * shape.width, random);
    const std::vector<float> bias = random_values(Values::Ordinary, experts, random);
    const std::vector<float> selection_bias = random_values(Values::Ordinary, experts, random);
    const DeviceArray<float> device_weights(weights);
    const DeviceArray<float> device_bias(bias);
    const DeviceArray<float> logits(static_cast<std::size_t>(tokens * experts));
    const DeviceArray<std::uint32_t> arrivals(
        std::vector<std::uint32_t>(static_cast<std::size_t>(tokens), 0));
    std::vector<ActivationForTest> rows;
    std::vector<float> expected;
    for (std::int32_t t = 0; t < tokens; ++t) {
        rows.emplace_back(input.normed(t));
        for (std::int64_t e = 0; e < experts; ++e) {
            const float dot =
                reference::dot_f32(weights.data() + e * shape.width, rows.back().row().values, shape.width);
            expected.push_back(dot * 0.5f + bias[static_cast<std::size_t>(e)]);
        }
    }
    RouterArgs router;
    router.input = input.view();
    router.weights = device_weights.get();
    router.scale = 0.5f;
    router.bias = device_bias.get();
    router.logits = logits.get();
    router.arrivals = arrivals.get();
    for (int repetition = 0; repetition < 3; ++repetition) {
        const RoutingForTest routing(
            shape.routing, shape.selection_bias ? selection_bias : std::vector<float>{}, tokens, shape.width);
        RouteArgs args = routing.args();
        args.logits_stride = experts;
        args.x = {router.input.out, router.input.stride, router.input.quantised};
        route_normed(router, args, nullptr);
        EXPECT_TRUE(all_same(logits.read(), expected));
        routing.expect(args, expected, rows);
        input.expect_stored();
    }
    for (const std::uint32_t arrived : arrivals.read()) EXPECT_EQ(arrived, 0u);
}

TEST(RouteNormed, OneTokenFollowsTheLaw) {
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE("width " + std::to_string(shape.width));
        for (const Values values : {Values::Ordinary, Values::Special}) {
            expect_law(shape, 1, values, false);
            expect_law(shape, 1, values, true);
        }
    }
}

TEST(RouteNormed, SoDoSeveralTokens) {
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE("width " + std::to_string(shape.width));
        for (const std::int32_t tokens : {2, 5, 8}) expect_law(shape, tokens, Values::Ordinary, true);
    }
}

}  // namespace
}  // namespace coterie::cuda
