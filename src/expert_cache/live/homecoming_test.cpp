// Exclusive residency: RAM holds what no device holds, and nothing gets lost on the way.

#include "expert_cache/live/homecoming.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 8;
constexpr std::int32_t kExperts = 16;

/// 16 experts, 6 slots without spare ones on the device, 10 places in RAM.
class HomecomingTest : public testing::Test {
  protected:
    void make(std::int32_t places = 10) {
        CacheOptions options = manual_options();
        options.slots = {{6}};
        options.spare_slots = 1;
        options.host_places = {places};
        options.uploads.watchdog = milliseconds(50);
        cache = std::make_unique<ExpertCache>(std::vector<Device*>{&device}, model.layers(), model.source(),
                                              counting_policies(1), clock, options);
        std::vector<ExpertKey> keys;
        for (std::int32_t e = 0; e < kExperts; ++e) keys.push_back({0, e});
        cache->preload(keys);
        cache->fill_ram(keys);
    }

    void use(std::vector<std::int32_t> experts) {
        { cache->begin_step().routed(0, experts, static_cast<std::int32_t>(experts.size())); }
        EXPECT_TRUE(cache->settle(seconds(1)));
        cache->check_integrity();
        expect_right_bytes();
    }
    bool on_device(std::int32_t expert) { return cache->find({0, expert}).has_value(); }
    bool in_ram(std::int32_t expert) { return cache->in_ram({0, expert}) != nullptr; }
    int only_in_file() {
        int count = 0;
        for (std::int32_t e = 0; e < kExperts; ++e) count += !on_device(e) && !in_ram(e) ? 1 : 0;
        return count;
    }
    void expect_right_bytes() {
        for (std::int32_t e = 0; e < kExperts; ++e) {
            const std::vector<std::byte>& expected = model.bytes({0, e});
            if (const auto found = cache->find({0, e})) {
                EXPECT_TRUE(model.matches(device, found->address, {0, e})) << e;
            }
            if (const std::byte* place = cache->in_ram({0, e})) {
                EXPECT_TRUE(std::equal(expected.begin(), expected.end(), place)) << e;
            }
        }
    }
    DeviceStatistics counts() { return cache->statistics().devices[0]; }

    SimulatedClock clock;
    FakeMachine machine{clock, {small_device(1 << 20)}, 0};
    FakeDevice& device = machine.device(0);
    HostModel model{{{kExperts, 5000}}, HostMemory::Pageable, kSeed};
    std::unique_ptr<ExpertCache> cache;
};

TEST_F(HomecomingTest, EachExpertIsInOnePlace) {
    make(11);
    for (std::int32_t e = 0; e < kExperts; ++e) EXPECT_EQ(on_device(e), !in_ram(e)) << e;
}

TEST_F(HomecomingTest, ASwapExchangesThem) {
    make(11);
    ASSERT_TRUE(on_device(0) && in_ram(12));
    for (int round = 0; round < 3; ++round) use({12, 13, 1, 2, 3});
    EXPECT_TRUE(on_device(12) && !in_ram(12));
    EXPECT_TRUE(in_ram(0) && !on_device(0));
    EXPECT_EQ(only_in_file(), 0);
    EXPECT_EQ(counts().returned, counts().evictions);
    EXPECT_EQ(counts().forgotten, 0u);
}

TEST_F(HomecomingTest, WhatFindsNoPlaceStaysInTheFile) {
    make(4);
    EXPECT_EQ(only_in_file(), kExperts - 5 - 4);
    for (int round = 0; round < 8; ++round) use({round, round + 3, 15 - round});
    EXPECT_EQ(only_in_file(), kExperts - static_cast<int>(counts().resident) - 4);
    EXPECT_GT(counts().forgotten, 0u);
}

TEST_F(HomecomingTest, ACopyBackThatFailsOrIsRefusedLosesNothing) {
    make(11);
    for (int copy = 1; copy < 12; ++copy) {
        device.fail_copy(copy);
        use({copy, copy + 2, copy + 4});
        device.refuse_copy(copy);
        use({copy + 1, copy + 3, copy + 4});
    }
    EXPECT_GT(counts().forgotten, 0u);
    EXPECT_GT(counts().returned, 0u);
    EXPECT_EQ(cache->free_slots(0, 0) + static_cast<std::int32_t>(counts().resident), 6);
    device.fail_copy(0);
    device.refuse_copy(0);
    for (int round = 0; round < 40; ++round) use({15});  // it can be had again
    EXPECT_TRUE(on_device(15));
}

TEST_F(HomecomingTest, APlaceThatARunningStepReadsIsNotReused) {
    make(11);
    const CacheStep reading = cache->begin_step(Learning::Off);
    const std::byte* place = cache->in_ram({0, 12});
    ASSERT_NE(place, nullptr);
    const std::vector<std::byte>& expected = model.bytes({0, 12});
    use({12});
    EXPECT_TRUE(on_device(12) && !in_ram(12));
    for (int round = 0; round < 6; ++round) {
        use({12, 13 - round % 2, 14, 15 - round % 3});
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), place)) << round;
    }
}

TEST_F(HomecomingTest, ALoanSendsHomeWhatThereIsRoomFor) {
    make(11);
    {
        const auto loan = cache->borrow(0, 8192);
        ASSERT_TRUE(loan);
        cache->check_integrity();
        expect_right_bytes();
        use({14});
    }
    for (int round = 0; round < 3; ++round) use({1, 2, 14});
    EXPECT_EQ(cache->slots(0, 0), 6);
}

TEST_F(HomecomingTest, ALostDevicesExpertsComeFromTheFile) {
    make(11);
    use({12});
    device.lose();
    use({13, 14});
    for (std::int32_t e = 0; e < kExperts; ++e) EXPECT_FALSE(on_device(e));
    std::uint64_t bytes = 0;
    for (std::int32_t e = 0; e < kExperts; ++e) {
        for (const auto& piece : cache->bytes_of({0, e}).pieces) bytes += piece.size();
    }
    EXPECT_EQ(bytes, kExperts * 5000u);
}

TEST_F(HomecomingTest, ACopyBackThatNeverEndsTakesTheDeviceOut) {
    make(11);
    use({12});
    device.slow_copies(1e12);
    use({13, 14, 15});
    EXPECT_TRUE(counts().lost);
    use({1});
}

}  // namespace
}  // namespace coterie::expert_cache
