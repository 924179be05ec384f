#include "engine/forward/hybrid/prompt_ring.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

#include "devices/fake_device.h"
#include "engine/forward/hybrid/prompt_guess.h"

namespace coterie::engine {
namespace {

using expert_cache::ExpertKey;
using expert_cache::HostExpert;
using std::chrono::microseconds;

constexpr std::uint64_t kBytes = 1000;  // of an expert: 1 us over the link

class PromptRingTest : public testing::Test {
  protected:
    PromptRingTest() : ring(device, memory->address(), kBytes, 4) {
        for (std::size_t e = 0; e < 8; ++e) experts.emplace_back(kBytes, std::byte(e + 1));
    }
    HostExpert expert(std::int32_t e) {
        const std::span<const std::byte> all = experts[static_cast<std::size_t>(e)];
        return {.pieces = {all.first(500), all.subspan(500), {}}, .memory = expert_cache::HostMemory::Pinned};
    }
    /// A product that takes 10 us and finds the right bytes, or not.
    void use(std::int32_t e) {
        const DeviceAddress at = ring.bring({0, e}, expert(e), *compute);
        const auto kernel = [this, at, e] {
            right += std::memcmp(device.resolve(at, kBytes), experts[static_cast<std::size_t>(e)].data(),
                                 kBytes) == 0;
        };
        compute->launch(kernel, microseconds(10));
        ring.consumed(*compute);
    }
    Nanoseconds time_of(std::int32_t e) {
        const Nanoseconds start = clock.now();
        use(e);
        compute->synchronise();
        return clock.now() - start;
    }

    SimulatedClock clock;
    FakeMachine machine{clock, {{.memory_bytes = 1 << 20, .link_rate = 1e9}}, 0};
    FakeDevice& device = machine.device(0);
    std::unique_ptr<DeviceMemory> memory = device.allocate(PromptRing::bytes(kBytes, 4));
    std::unique_ptr<FakeStream> compute = device.create_fake_stream();
    PromptRing ring;
    std::vector<std::vector<std::byte>> experts;
    int right = 0;
};

TEST_F(PromptRingTest, WhatRanAheadIsThereWhenItIsAskedFor) {
    EXPECT_EQ(time_of(0), microseconds(11));
    EXPECT_EQ(ring.room_ahead(), 2);
    ring.run_ahead({0, 1}, expert(1));
    ring.run_ahead({0, 2}, expert(2));
    EXPECT_EQ(ring.room_ahead(), 0);
    EXPECT_TRUE(ring.is_ahead({0, 1}));
    EXPECT_FALSE(ring.is_ahead({1, 1}));
    clock.advance(microseconds(50));  // attention
    EXPECT_EQ(time_of(2), microseconds(10));
    EXPECT_EQ(time_of(1), microseconds(10));
    EXPECT_EQ(ring.room_ahead(), 2);
    EXPECT_EQ(right, 3);
}

TEST_F(PromptRingTest, BuffersOfWaitingExpertsAreNotFilledAnew) {
    ring.run_ahead({0, 7}, expert(7));
    ring.run_ahead({0, 6}, expert(6));
    for (std::int32_t e = 0; e < 6; ++e) use(e);
    use(6);
    use(7);
    compute->synchronise();
    EXPECT_EQ(right, 8);
}

TEST_F(PromptRingTest, WhatIsNotNeededGivesItsBufferUp) {
    for (int round = 0; round < 5; ++round) {
        ring.run_ahead({0, 6}, expert(6));
        ring.run_ahead({0, 7}, expert(7));
        for (std::int32_t e = 0; e < 4; ++e) use(e);
        ring.forget_ahead();
        EXPECT_FALSE(ring.is_ahead({0, 6}));
        EXPECT_EQ(ring.room_ahead(), 2);
    }
    compute->synchronise();
    EXPECT_EQ(right, 20);
}

TEST_F(PromptRingTest, SettledMeansThatNothingReadsRamAnyMore) {
    ring.run_ahead({0, 6}, expert(6));
    EXPECT_EQ(ring.settle(microseconds(0)), EventState::Pending);
    EXPECT_EQ(ring.settle(std::chrono::seconds(1)), EventState::Reached);
    EXPECT_EQ(clock.now(), microseconds(1));
    device.fail_copy(1);
    ring.run_ahead({0, 5}, expert(5));
    EXPECT_EQ(ring.settle(std::chrono::seconds(1)), EventState::Failed);
    EXPECT_EQ(time_of(4), microseconds(11)) << "the ring works again";
    EXPECT_EQ(right, 1);
}

TEST(PromptGuessTest, ExpertsThatWindowsChoseMostComeFirst) {
    PromptGuess guess(std::vector<expert_cache::LayerShape>{{4, 1}, {2, 1}});
    const auto likely = [&](int layer) {
        const auto order = guess.likely(layer);
        return std::vector<std::int32_t>(order.begin(), order.end());
    };
    EXPECT_EQ(likely(0), (std::vector<std::int32_t>{0, 1, 2, 3})) << "nothing is known";
    guess.learn(0, std::vector<std::int32_t>{3, 1, 3});
    EXPECT_EQ(likely(0), (std::vector<std::int32_t>{3, 1}));
    guess.learn(0, std::vector<std::int32_t>{1, 1});
    EXPECT_EQ(likely(0), (std::vector<std::int32_t>{1, 3}));
    EXPECT_EQ(likely(1), (std::vector<std::int32_t>{0, 1}));
}

}  // namespace
}  // namespace coterie::engine
