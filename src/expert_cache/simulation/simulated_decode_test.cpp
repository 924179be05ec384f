#include "expert_cache/simulation/simulated_decode.h"

#include <gtest/gtest.h>
#include <set>

namespace coterie::expert_cache {
namespace {

TEST(LocalRoutingTest, ChoosesDifferentExpertsWithLocality) {
    LocalRouting routing({.experts = 64, .used = 6});
    std::set<std::int32_t> last;
    int repeated = 0;
    for (int token = 0; token < 1000; ++token) {
        const auto chosen = routing.next();
        const std::set<std::int32_t> now(chosen.begin(), chosen.end());
        ASSERT_EQ(now.size(), 6U);
        ASSERT_GE(*now.begin(), 0);
        ASSERT_LT(*now.rbegin(), 64);
        for (const std::int32_t expert : now) repeated += last.contains(expert) ? 1 : 0;
        last = now;
    }
    EXPECT_GT(repeated, 2 * 1000 * 6 * 6 / 64);  // twice what independent uniform choices would repeat
}

/// An RTX 3090 on two channels of DDR4; experts of Qwen3-30B-A3B as Q4_K_M.
DecodeScenario desktop(std::int32_t slots) {
    DeviceCosts device;
    device.link_bytes_per_second = 24e9;
    device.contended_link_bytes_per_second = 21e9;
    device.copy_seconds = 5e-6;
    device.memory_bytes_per_second = 936e9;
    device.compute = {ComputeCosts{}};
    DecodeScenario scenario;
    scenario.costs.kinds = {"Q4_K, Q6_K"};
    scenario.costs.cpu.read_bytes_per_second = 42e9;
    scenario.costs.cpu.handoff_seconds = 15e-6;
    scenario.costs.cpu.compute = {ComputeCosts{}};
    scenario.costs.devices = {device};
    scenario.costs.ram_bytes_per_second = 42e9;
    scenario.layers = 12;
    scenario.expert_bytes = 2'857'000;
    scenario.dense_bytes = 11'800'000;
    scenario.slots = slots;
    scenario.warm_up_tokens = 512;
    scenario.tokens = 256;
    return scenario;
}

TEST(SimulatedDecodeTest, ComesNearWhatTheBytesTake) {
    struct Expected {
        std::int32_t slots;
        double hit_rate;
    };
    for (const Expected& expected : {Expected{34, 0.75}, Expected{58, 0.90}, Expected{74, 0.95}}) {
        const DecodeOutcome outcome = simulate_decode(desktop(expected.slots));
        EXPECT_NEAR(outcome.hit_rate(), expected.hit_rate, 0.02);
        EXPECT_GE(outcome.expert_share(), 0.85) << expected.slots << " slots";
        EXPECT_LE(outcome.expert_share(), 1);
    }
}

TEST(SimulatedDecodeTest, EveryExpertResidentTakesExactlyItsBytes) {
    const DecodeOutcome outcome = simulate_decode(desktop(128));
    // Experts that were never used before still miss.
    EXPECT_GT(outcome.hit_rate(), 0.98);
    EXPECT_GE(outcome.token_share(), 0.9);
}

TEST(SimulatedDecodeTest, WithoutSlotsTheCpuDoesAll) {
    DecodeScenario scenario = desktop(0);
    scenario.spare_slots = 0;
    scenario.queue_length = 0;
    const DecodeOutcome outcome = simulate_decode(scenario);
    EXPECT_EQ(outcome.hits, 0);
    EXPECT_EQ(outcome.uploads, 0);
    const double layers = static_cast<double>(scenario.layers * scenario.tokens);
    EXPECT_NEAR(outcome.expert_seconds, layers * (15e-6 + 8 * 2'857'000 / 42e9), 1e-6);
}

TEST(SimulatedDecodeTest, IsDeterministic) {
    const DecodeOutcome a = simulate_decode(desktop(40));
    const DecodeOutcome b = simulate_decode(desktop(40));
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.hits, b.hits);
}

}  // namespace
}  // namespace coterie::expert_cache
