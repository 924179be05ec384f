#include "kernels/cuda/moe.h"

#include <gtest/gtest.h>

#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/routing_for_test.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

struct Case {
    cpu::Routing routing;
    bool bias = false;
    Values values = Values::Ordinary;
};

std::vector<Case> cases() {
    using cpu::Gating;
    std::vector<Case> list;
    for (const Gating gating : {Gating::Softmax, Gating::Sigmoid, Gating::SoftmaxOfSelected}) {
        for (const bool normalise : {false, true}) {
            for (const Values values : {Values::Ordinary, Values::Wide, Values::Special}) {
                list.push_back({{gating, 128, 8, 1, 1, normalise, 1.0f}, false, values});
                list.push_back({{gating, 60, 4, 1, 1, normalise, 2.5f}, true, values});
                list.push_back({{gating, 512, 10, 1, 1, normalise, 1.0f}, true, values});
                list.push_back({{gating, 64, 6, 8, 3, normalise, 1.5f}, true, values});
                list.push_back({{gating, 3, 3, 1, 1, normalise, 1.0f}, false, values});
            }
        }
    }
    return list;
}

TEST(Route, ChoosesAsTheCpuDoes) {
    constexpr std::int32_t kTokens = 5;
    constexpr std::int32_t kColumns = 96;
    SplitMix64 random(kSeed);
    int number = 0;
    for (const Case& c : cases()) {
        SCOPED_TRACE("case " + std::to_string(number++));
        const std::int64_t experts = c.routing.experts;
        const std::vector<float> logits = random_values(c.values, kTokens * experts, random);
        const std::vector<float> bias = random_values(Values::Ordinary, experts, random);
        std::vector<ActivationForTest> rows;
        for (std::uint64_t t = 0; t < kTokens; ++t) rows.emplace_back(random_values_for_test(kColumns, t));
        const DeviceActivations x(rows, kColumns);
        const DeviceArray<float> device_logits(logits);
        const RoutingForTest routing(c.routing, c.bias ? bias : std::vector<float>{}, kTokens, kColumns);
        RouteArgs args = routing.args();
        args.logits = device_logits.get();
        args.logits_stride = experts;
        args.x = x.view();
        route(args, nullptr);
        routing.expect(args, logits, rows);
    }
}

struct CombineCase {
    bool missing;
    bool shared;
    bool gated;
};

TEST(Combine, AddsInRankOrderFromBothSides) {
    constexpr std::int32_t kTokens = 3;
    constexpr std::int32_t kUsed = 4;
    constexpr std::int32_t kWidth = 300;
    constexpr std::int64_t kStride = 320;
    SplitMix64 random(kSeed);
    for (const CombineCase c :
         {CombineCase{false, false, false}, {true, false, false}, {true, true, false}, {true, true, true}}) {
        const std::vector<float> rows = random_values(Values::Wide, kTokens * kUsed * kStride, random);
        const std::vector<float> shared = random_values(Values::Ordinary, kTokens * kStride, random);
        const std::vector<float> gates = random_values(Values::Ordinary, kTokens, random);
        const std::vector<float> weights = random_values(Values::Ordinary, kTokens * kUsed, random);
        std::vector<std::uint64_t> slots(kTokens * kUsed, 1);
        if (c.missing) slots[1] = slots[6] = 0;
        const DeviceArray<float> device_rows(rows);
        const DeviceArray<float> device_shared(shared);
        const DeviceArray<float> device_gates(gates);
        const DeviceArray<float> device_weights(weights);
        const DeviceArray<std::uint64_t> device_slots(slots);
        const DeviceArray<std::uint64_t> step(std::vector<std::uint64_t>{2});
        const DeviceArray<std::uint32_t> missing(std::vector<std::uint32_t>{0, c.missing ? 2u : 0u});
        const DeviceArray<float> out(kTokens * kStride);
        const MappedArray<float> host_outputs(2 * kWidth);
        const MappedArray<std::int32_t> host_rows(kTokens * kUsed);
        const MappedArray<std::uint64_t> flags(4);
        host_rows[1] = 1;
        host_rows[6] = 0;
        for (std::size_t i = 0; i < 2 * kWidth; ++i) host_outputs[i] = 2.0f * random.next_float() - 1.0f;
        flags[0] = 2 * kEpochsPerStep + 2;
        CombineArgs args;
        args.layer = 1;
        args.used = kUsed;
        args.out = {out.get(), kStride, kTokens, kWidth};
        args.rows = device_rows.get();
        args.stride = kStride;
        args.slots = device_slots.get();
        args.weights = device_weights.get();
        args.shared = c.shared ? device_shared.get() : nullptr;
        args.shared_gate = c.gated ? device_gates.get() : nullptr;
        args.counters = {step.get(), missing.get(), nullptr, nullptr, nullptr, nullptr};
        args.mailbox.rows = host_rows.get();
        args.mailbox.outputs = host_outputs.get();
        args.mailbox.reply = flags.get();
        args.mailbox.failed = flags.get() + 1;
        combine(args, nullptr);
        const std::vector<float> result = out.read();
        EXPECT_EQ(flags[1], 0u);
        for (std::size_t t = 0; t < kTokens; ++t) {
            std::vector<float> expected(kWidth, 0.0f);
            for (std::size_t rank = 0; rank < kUsed; ++rank) {
                const std::size_t pair = t * kUsed + rank;
                const float* row = slots[pair] != 0 ? rows.data() + pair * kStride
                                                    : host_outputs.get() +
                                                          static_cast<std::size_t>(host_rows[pair]) * kWidth;
                reference::add_scaled(row, weights[pair], kWidth, expected.data());
            }
            if (c.gated) {
                float share = 0.0f;
                reference::sigmoid(&gates[t], 1, &share);
                reference::add_scaled(shared.data() + t * kStride, share, kWidth, expected.data());
            } else if (c.shared) {
                reference::add(expected.data(), shared.data() + t * kStride, kWidth, expected.data());
            }
            EXPECT_TRUE(all_same(std::span(result).subspan(t * kStride), expected)) << "token " << t;
        }
    }
}

TEST(Combine, DoesNotWaitForEver) {
    const DeviceArray<std::uint64_t> slots(std::vector<std::uint64_t>{0});
    const DeviceArray<float> weights(std::vector<float>{1.0f});
    const DeviceArray<std::uint64_t> step(std::vector<std::uint64_t>{5});
    const DeviceArray<std::uint32_t> missing(std::vector<std::uint32_t>{1});
    const DeviceArray<float> out(32);
    const MappedArray<float> outputs(32);
    const MappedArray<std::int32_t> rows(1);
    const MappedArray<std::uint64_t> flags(4);
    CombineArgs args;
    args.used = 1;
    args.out = {out.get(), 32, 1, 32};
    args.slots = slots.get();
    args.weights = weights.get();
    args.counters = {step.get(), missing.get(), nullptr, nullptr, nullptr, nullptr};
    args.mailbox.rows = rows.get();
    args.mailbox.outputs = outputs.get();
    args.mailbox.reply = flags.get();
    args.mailbox.failed = flags.get() + 1;
    args.mailbox.done = flags.get() + 2;
    combine(args, nullptr);
    finish_step({0, 1, 0, args.counters, args.mailbox}, nullptr);
    check(cudaDeviceSynchronize(), "combine");
    EXPECT_EQ(flags[1], 5 * kEpochsPerStep + 1);
    EXPECT_EQ(flags[2], 5u);
}

}  // namespace
}  // namespace coterie::cuda
