// Loans, changes of size and changes of shares of a cache that serves.

#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 3;
constexpr std::uint64_t kKiB = 1024;

/// Looks at everything whenever somebody waits.
class WatchedClock final : public Clock {
  public:
    Nanoseconds now() const override { return clock_.now(); }
    void wait_until(Nanoseconds time) override {
        if (watch) watch();
        clock_.wait_until(time);
    }
    std::function<void()> watch;

  private:
    SimulatedClock clock_;
};

class ReshapingTest : public testing::Test {
  protected:
    ReshapingTest() {
        CacheOptions options = manual_options();
        options.slots = {{12, 9}};
        cache = std::make_unique<ExpertCache>(std::vector<Device*>{&device}, model.layers(), model.source(),
                                              counting_policies(1), clock, options);
        // Expert 0 is the hottest; so the hottest stand in the first slots.
        for (std::int32_t layer = 0; layer < 2; ++layer) {
            for (std::int32_t uses = 10; uses > 0; --uses) {
                for (std::int32_t e = 0; e < uses; ++e) use(layer, e);
            }
        }
    }

    void use(std::int32_t layer, std::int32_t expert) {
        { cache->begin_step().routed(layer, std::span(&expert, 1), 1); }
        ASSERT_TRUE(cache->settle(seconds(1)));
    }
    bool has(ExpertKey key) {
        const auto found = cache->find(key);
        if (!found) return false;
        EXPECT_TRUE(model.matches(device, found->address, key));
        return true;
    }
    std::vector<std::int32_t> residents(std::int32_t layer) {
        std::vector<std::int32_t> result;
        for (std::int32_t e = 0; e < 16; ++e) {
            if (has({layer, e})) result.push_back(e);
        }
        return result;
    }
    std::uint64_t mapped() { return cache->statistics().devices[0].mapped_bytes; }

    WatchedClock clock;
    FakeMachine machine{clock, {small_device(112 * kKiB)}, 0};
    FakeDevice& device = machine.device(0);
    HostModel model{{{16, 5000}, {16, 3100}}, HostMemory::Pinned, kSeed};
    std::unique_ptr<ExpertCache> cache;
};

TEST_F(ReshapingTest, ALoanIsContiguousMemoryAndTheColdestExpertsPay) {
    ASSERT_EQ(residents(0).size(), 10u);
    const std::uint64_t before = mapped();
    {
        const auto loan = cache->borrow(0, 40 * kKiB);
        ASSERT_TRUE(loan);
        EXPECT_GE(loan->bytes(), 40 * kKiB);
        EXPECT_LE(mapped() + loan->bytes(), before);
        std::memset(device.resolve(loan->address(), loan->bytes()), 1, loan->bytes());
        cache->check_integrity();
        const auto left = residents(0);
        ASSERT_FALSE(left.empty());
        EXPECT_LT(left.size(), 10u);
        for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], static_cast<std::int32_t>(i));
        EXPECT_FALSE(residents(1).empty());
        EXPECT_FALSE(cache->borrow(0, 4 * kKiB));  // one at a time
    }
    EXPECT_EQ(mapped(), before);
    cache->check_integrity();
    for (std::int32_t e = 0; e < 10; ++e) use(0, e);
    EXPECT_EQ(residents(0).size(), 10u);
}

TEST_F(ReshapingTest, HotExpertsInTheLastSlotsMoveForward) {
    for (int round = 0; round < 50; ++round) {
        for (std::int32_t e = 8; e < 10; ++e) use(0, e);
    }
    const auto loan = cache->borrow(0, 60 * kKiB);
    ASSERT_TRUE(loan);
    EXPECT_TRUE(has({0, 8}));
    EXPECT_TRUE(has({0, 9}));
    EXPECT_GT(cache->statistics().devices[0].moved_bytes, 0u);
    cache->check_integrity();
}

TEST_F(ReshapingTest, WhileExpertsMoveEveryResidentHasItsBytes) {
    for (int round = 0; round < 50; ++round) {
        for (std::int32_t e = 6; e < 10; ++e) use(0, e);
    }
    int looks = 0;
    clock.watch = [&] {
        ++looks;
        EXPECT_GE(residents(0).size(), 3u);
    };
    EXPECT_TRUE(cache->borrow(0, 60 * kKiB));
    clock.watch = nullptr;
    EXPECT_GT(looks, 1);
    EXPECT_GT(cache->statistics().devices[0].moved_bytes, 0u);
}

TEST_F(ReshapingTest, ALoanOfMoreThanThereIsIsRefused) {
    EXPECT_FALSE(cache->borrow(0, 1000 * kKiB));
    EXPECT_EQ(residents(0).size(), 10u);
    const auto all = cache->borrow(0, mapped());
    ASSERT_TRUE(all);
    EXPECT_TRUE(residents(0).empty());
    EXPECT_EQ(mapped(), 0u);
}

TEST_F(ReshapingTest, ALoanWaitsForLeasesInVainAndChangesNothing) {
    const std::uint64_t before = mapped();
    auto lease = cache->acquire({0, 9});
    ASSERT_TRUE(lease);
    const Nanoseconds start = clock.now();
    EXPECT_FALSE(cache->borrow(0, mapped()));
    EXPECT_GE(clock.now() - start, std::chrono::milliseconds(20));
    EXPECT_TRUE(model.matches(device, lease->address(), {0, 9}));
    EXPECT_EQ(mapped(), before);
    cache->check_integrity();
    lease.reset();
    EXPECT_TRUE(cache->borrow(0, mapped()));
}

TEST_F(ReshapingTest, AStepThatReadsHoldsUpALoan) {
    CacheStep step = cache->begin_step();
    const auto found = cache->find({0, 9});
    EXPECT_FALSE(cache->borrow(0, mapped()));
    EXPECT_TRUE(model.matches(device, found->address, {0, 9}));
    step.refresh();
    EXPECT_TRUE(cache->borrow(0, mapped()));
}

TEST_F(ReshapingTest, MemoryThatIsRefusedMakesNoLoan) {
    device.refuse_allocation(1);
    EXPECT_FALSE(cache->borrow(0, 20 * kKiB));
    cache->check_integrity();
    EXPECT_TRUE(cache->borrow(0, 20 * kKiB));
}

TEST_F(ReshapingTest, AGrowthThatIsRefusedLeavesASmallerCache) {
    auto loan = cache->borrow(0, 40 * kKiB);
    ASSERT_TRUE(loan);
    const std::uint64_t lent = loan->bytes();
    const std::uint64_t small = mapped();
    device.limit_memory(112 * kKiB - device.free_bytes() - 20 * kKiB);
    { const MemoryLoan ends = std::move(*loan); }
    EXPECT_GE(mapped(), small);
    EXPECT_LT(mapped(), small + lent);
    cache->check_integrity();
    use(0, 3);
    EXPECT_TRUE(has({0, 3}));
}

TEST_F(ReshapingTest, ResizingKeepsTheHottestAndTheShares) {
    const std::uint64_t free = device.free_bytes();
    const std::uint64_t before = mapped();
    EXPECT_LE(cache->resize(0, before / 2), before / 2);
    EXPECT_EQ(device.free_bytes(), free + before - mapped());
    EXPECT_NEAR(cache->slots(0, 0), 6, 1);
    EXPECT_NEAR(cache->slots(0, 1), 4, 1);
    const auto left = residents(0);
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], static_cast<std::int32_t>(i));
    cache->check_integrity();
    EXPECT_EQ(cache->resize(0, 0), 0u);
    EXPECT_TRUE(residents(0).empty());
    EXPECT_GT(cache->resize(0, before), before * 3 / 4);
    cache->check_integrity();
}

TEST_F(ReshapingTest, RebalancingMovesSlotsBetweenLayers) {
    cache->rebalance({{4, 16}});
    EXPECT_EQ(cache->slots(0, 0), 4);
    EXPECT_EQ(cache->slots(0, 1), 16);
    EXPECT_EQ(residents(0), (std::vector<std::int32_t>{0, 1, 2}));
    EXPECT_EQ(residents(1).size(), 7u);
    for (std::int32_t e = 0; e < 16; ++e) use(1, e);
    EXPECT_EQ(residents(1).size(), 16u);
    cache->check_integrity();
}

}  // namespace
}  // namespace coterie::expert_cache
