#include "kernels/cuda/moe.h"

#include <gtest/gtest.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/device_array_for_test.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

/// Memory that host and device both see.
template <typename T>
class MappedArray {
  public:
    explicit MappedArray(std::size_t count) {
        void* memory = nullptr;
        check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
        data_ = static_cast<T*>(memory);
        std::memset(memory, 0, count * sizeof(T));
    }
    ~MappedArray() { cudaFreeHost(data_); }
    MappedArray(const MappedArray&) = delete;
    MappedArray& operator=(const MappedArray&) = delete;
    T* get() const { return data_; }
    T& operator[](std::size_t i) const { return data_[i]; }

  private:
    T* data_ = nullptr;
};

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
    constexpr std::int32_t kLayers = 3;
    SplitMix64 random(kSeed);
    int number = 0;
    for (const Case& c : cases()) {
        SCOPED_TRACE("case " + std::to_string(number++));
        const std::int64_t experts = c.routing.experts;
        const std::int64_t used = c.routing.used;
        const std::vector<float> logits = random_values(c.values, kTokens * experts, random);
        const std::vector<float> bias = random_values(Values::Ordinary, experts, random);
        std::vector<std::uint64_t> residents(static_cast<std::size_t>(experts));
        for (std::size_t e = 0; e < residents.size(); ++e) residents[e] = e % 3 == 0 ? 0 : 4096 * (e + 1);
        std::vector<ActivationForTest> rows;
        for (std::uint64_t t = 0; t < kTokens; ++t) rows.emplace_back(random_values_for_test(96, t));
        const DeviceActivations x(rows, 96);

        const auto pairs = static_cast<std::size_t>(kTokens * used);
        const DeviceArray<float> device_logits(logits);
        const DeviceArray<float> device_bias(bias);
        const DeviceArray<std::uint64_t> device_residents(residents);
        const DeviceArray<std::int32_t> chosen(pairs);
        const DeviceArray<float> weights(pairs);
        const DeviceArray<std::uint64_t> slots(pairs);
        const DeviceArray<std::uint64_t> step(std::vector<std::uint64_t>{9});
        const DeviceArray<std::uint32_t> missing(std::vector<std::uint32_t>(kLayers, 0u));
        const DeviceArray<std::uint32_t> routed(std::vector<std::uint32_t>(kLayers, 0u));
        const DeviceArray<std::int32_t> kept(kLayers * pairs);
        const DeviceArray<float> kept_weights(kLayers * pairs);
        const MappedArray<std::int32_t> posted(kLayers * pairs);
        const MappedArray<float> posted_weights(kLayers * pairs);
        const MappedArray<std::uint32_t> posted_missing(kLayers);
        const MappedArray<std::int8_t> quants(kTokens * 256);
        const MappedArray<float> scales(kTokens * 8);
        const MappedArray<float> scaled_sums(kTokens * 8);
        const MappedArray<std::int16_t> half_sums(kTokens * 16);
        const MappedArray<float> values(kTokens * 256);
        const MappedArray<std::uint64_t> request(2);
        RouteArgs args;
        args.routing = c.routing;
        args.layer = 1;
        args.tokens = kTokens;
        args.max_tokens = kTokens;
        args.logits = device_logits.get();
        args.logits_stride = experts;
        args.selection_bias = c.bias ? device_bias.get() : nullptr;
        args.residents = device_residents.get();
        args.experts = chosen.get();
        args.weights = weights.get();
        args.slots = slots.get();
        args.x = x.view();
        args.columns = 96;
        args.counters = {step.get(), missing.get(), routed.get(), kept.get(), kept_weights.get(), nullptr};
        args.mailbox.experts = posted.get();
        args.mailbox.weights = posted_weights.get();
        args.mailbox.missing = posted_missing.get();
        args.mailbox.values = values.get();
        args.mailbox.quants = quants.get();
        args.mailbox.scales = scales.get();
        args.mailbox.scaled_sums = scaled_sums.get();
        args.mailbox.half_sums = half_sums.get();
        args.mailbox.groups = 8;
        args.mailbox.request = request.get();
        args.mailbox.done = request.get() + 1;
        route(args, nullptr);
        finish_step({kLayers, static_cast<std::int32_t>(pairs), static_cast<std::int64_t>(pairs),
                     args.counters, args.mailbox},
                    nullptr);

        const std::vector<std::int32_t> ids = chosen.read();
        const std::vector<float> shares = weights.read();
        const std::vector<std::uint64_t> found = slots.read();
        std::uint32_t expected_missing = 0;
        std::vector<float> scratch(static_cast<std::size_t>(3 * experts));
        for (std::int32_t t = 0; t < kTokens; ++t) {
            std::vector<std::int32_t> expected(static_cast<std::size_t>(used));
            std::vector<float> expected_weights(static_cast<std::size_t>(used));
            cpu::route(*cpu::kernels_for(cpu::InstructionSet::Scalar), c.routing, logits.data() + t * experts,
                       c.bias ? bias.data() : nullptr, scratch.data(), expected.data(),
                       expected_weights.data());
            bool any_missing = false;
            for (std::size_t rank = 0; rank < expected.size(); ++rank) {
                const std::size_t pair = static_cast<std::size_t>(t * used) + rank;
                EXPECT_EQ(ids[pair], expected[rank]) << "token " << t << " rank " << rank;
                EXPECT_TRUE(same(shares[pair], expected_weights[rank]))
                    << shares[pair] << " instead of " << expected_weights[rank] << ", token " << t << " rank "
                    << rank;
                EXPECT_EQ(posted[pairs + pair], expected[rank]);
                EXPECT_TRUE(same(posted_weights[pairs + pair], expected_weights[rank]));
                EXPECT_EQ(found[pair], residents[static_cast<std::size_t>(expected[rank])]);
                any_missing |= found[pair] == 0;
                expected_missing += found[pair] == 0;
            }
            if (!any_missing) continue;
            const ActivationRow row = rows[static_cast<std::size_t>(t)].row();
            EXPECT_EQ(std::memcmp(quants.get() + t * 256, row.quants, 96), 0);
            EXPECT_EQ(std::memcmp(values.get() + t * 256, row.values, 96 * 4), 0);
            EXPECT_EQ(std::memcmp(scales.get() + t * 8, row.scales, 3 * 4), 0);
            EXPECT_EQ(std::memcmp(scaled_sums.get() + t * 8, row.scaled_sums, 3 * 4), 0);
            EXPECT_EQ(std::memcmp(half_sums.get() + t * 16, row.half_sums, 6 * 2), 0);
        }
        EXPECT_EQ(posted_missing[1], expected_missing);
        EXPECT_EQ(request[1], 9u);
        EXPECT_EQ(request[0], expected_missing == 0 ? 0 : 9 * kEpochsPerStep + 2);
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
