// Each fault of a device leaves a smaller cache that holds right bytes.

#include <gtest/gtest.h>

#include "base/error.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 5;

class FaultsTest : public testing::Test {
  protected:
    FaultsTest() {
        options = manual_options();
        options.uploads.watchdog = milliseconds(50);
        options.slots = {{8}, {8}};
        std::vector<Device*> devices{&machine.device(0), &machine.device(1)};
        cache = std::make_unique<ExpertCache>(devices, model.layers(), model.source(), counting_policies(1),
                                              clock, options);
    }

    void use(std::vector<std::int32_t> experts) {
        { cache->begin_step().routed(0, experts, static_cast<std::int32_t>(experts.size())); }
        EXPECT_TRUE(cache->settle(seconds(1)));
        cache->check_integrity();
    }
    bool has(std::int32_t expert) {
        const auto found = cache->find({0, expert});
        if (!found) return false;
        EXPECT_TRUE(model.matches(machine.device(found->device), found->address, {0, expert}));
        return true;
    }
    std::vector<std::int32_t> residents() {
        std::vector<std::int32_t> result;
        for (std::int32_t e = 0; e < 32; ++e) {
            if (has(e)) result.push_back(e);
        }
        return result;
    }
    /// Fetches with a kernel behind the copy; whether the kernel ran and saw the right bytes.
    std::optional<bool> fetch(std::int32_t expert) {
        std::optional<bool> right;
        CacheStep step = cache->begin_step();
        const auto address = step.fetch({0, expert}, 0, *stream);
        try {
            const auto kernel = [&, this] {
                right = model.matches(machine.device(0), *address, {0, expert});
            };
            if (address) stream->launch(kernel, Nanoseconds(10));
            stream->synchronise();
        } catch (const Error&) {  // the caller computes the expert on the CPU
        }
        return right;
    }
    DeviceStatistics counts(std::size_t device) { return cache->statistics().devices[device]; }

    SimulatedClock clock;
    FakeMachine machine{clock, {small_device(1 << 20), small_device(1 << 20)}, 0};
    HostModel model{{{32, 5000}}, HostMemory::Pageable, kSeed};
    CacheOptions options;
    std::unique_ptr<FakeStream> stream = machine.device(0).create_fake_stream();
    std::unique_ptr<ExpertCache> cache;
};

TEST_F(FaultsTest, AnUploadThatFailsLeavesItsExpertToTheCpu) {
    machine.device(0).fail_copy(3);
    machine.device(1).refuse_copy(2);
    use({0, 1});
    EXPECT_TRUE(residents().empty());
    EXPECT_EQ(counts(0).failures + counts(1).failures, 2u);
    use({0, 1});
    EXPECT_EQ(residents().size(), 2u);
}

TEST_F(FaultsTest, AFetchThatIsRefusedOrFailsLeavesItsExpertToTheCpu) {
    machine.device(0).refuse_copy(1);
    EXPECT_EQ(fetch(3), std::nullopt);
    EXPECT_FALSE(has(3));
    machine.device(0).refuse_copy(2);  // part of it is under way
    EXPECT_EQ(fetch(3), std::nullopt);
    machine.device(0).fail_copy(2);
    EXPECT_EQ(fetch(3), std::nullopt);
    EXPECT_FALSE(has(3));
    cache->settle(seconds(1));
    cache->check_integrity();
    EXPECT_EQ(counts(0).failures, 3u);
    EXPECT_EQ(cache->free_slots(0, 0), 8);
    EXPECT_EQ(fetch(3), true);
    EXPECT_TRUE(has(3));
}

TEST_F(FaultsTest, SlowCopiesOnlyTakeLonger) {
    machine.device(0).slow_copies(100);
    machine.device(1).slow_copies(30);
    use({0, 1, 2, 3, 4});
    EXPECT_EQ(residents().size(), 5u);
}

TEST_F(FaultsTest, ALostDeviceLeavesTheCacheAndTheOtherGoesOn) {
    use({0, 1, 2, 3, 4, 5});
    ASSERT_GT(counts(0).resident, 0u);
    ASSERT_GT(counts(1).resident, 0u);
    machine.device(0).lose_at_copy(1);
    use({6, 7, 8, 9});
    EXPECT_TRUE(counts(0).lost);
    EXPECT_EQ(counts(0).resident, 0u);
    EXPECT_FALSE(residents().empty());
    EXPECT_EQ(fetch(20), std::nullopt);
    EXPECT_EQ(cache->free_slots(0, 0), 0);
    for (int round = 0; round < 5; ++round) use({10, 11, 12, 13});
    EXPECT_TRUE(has(13));
    EXPECT_EQ(residents().size(), 6u);
    EXPECT_FALSE(cache->borrow(0, 4096));
    EXPECT_TRUE(cache->borrow(1, 4096));
    cache->resize(0, 4096);
}

TEST_F(FaultsTest, ADeviceLostInAFetchFailsItsStreamAndLeaves) {
    machine.device(0).lose_at_copy(2);
    EXPECT_EQ(fetch(3), std::nullopt);
    cache->settle(seconds(1));
    EXPECT_TRUE(counts(0).lost);
    EXPECT_EQ(fetch(4), std::nullopt);
}

TEST_F(FaultsTest, LeasesAndLoansOutliveTheirDevice) {
    use({0, 1, 2, 3});
    std::vector<ExpertLease> leases;
    for (std::int32_t e = 0; e < 4; ++e) leases.push_back(std::move(*cache->acquire({0, e})));
    auto loan = cache->borrow(0, 4096);
    machine.device(0).lose();
    use({5});
    EXPECT_TRUE(counts(0).lost);
}

TEST_F(FaultsTest, ACopyThatStallsTakesItsDeviceOutOfTheCache) {
    use({0, 1, 2, 3});
    machine.device(0).slow_copies(1e12);
    use({4, 5, 6, 7});
    EXPECT_TRUE(counts(0).lost);
    EXPECT_FALSE(counts(1).lost);
    use({8});
    EXPECT_TRUE(has(8));
}

TEST_F(FaultsTest, AFetchThatStallsTakesItsDeviceOutOfTheCache) {
    FakeDevice& device = machine.device(0);
    device.slow_copies(1e12);
    CacheStep step = cache->begin_step();
    ASSERT_TRUE(step.fetch({0, 3}, 0, *stream));
    EXPECT_TRUE(cache->settle(seconds(1)));
    EXPECT_TRUE(counts(0).lost);
}

TEST_F(FaultsTest, ADeviceThatKeepsFailingIsLeftOut) {
    for (int round = 0; round < 40 && !counts(0).out; ++round) {
        machine.device(0).refuse_copy(1);
        use({round % 32});
    }
    EXPECT_TRUE(counts(0).out);
    EXPECT_FALSE(counts(0).lost);
    use({1});
    EXPECT_TRUE(has(1));
}

TEST_F(FaultsTest, ADeviceThatIsOutForNowComesBackEmptyAndServes) {
    use({0, 1, 2, 3, 4, 5});
    ASSERT_GT(counts(0).resident, 0u);
    const auto drop_again = [&] {
        for (int round = 0; round < 40 && !counts(0).out; ++round) {
            machine.device(0).refuse_copy(1);
            use({20 + round % 12});
        }
        ASSERT_TRUE(counts(0).out);
        EXPECT_EQ(counts(0).resident, 0u);
    };
    drop_again();
    use({1});
    EXPECT_TRUE(counts(0).out) << "too early";
    clock.advance(milliseconds(110));
    for (int round = 0; round < 3; ++round) use({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    EXPECT_FALSE(counts(0).out);
    EXPECT_GT(counts(0).resident, 0u);
    EXPECT_EQ(cache->free_slots(0, 0) + static_cast<std::int32_t>(counts(0).resident), 8);
}

TEST_F(FaultsTest, EachFailureInARowMakesTheWaitLonger) {
    const auto fail_until_out = [&] {
        for (int round = 0; round < 40 && !counts(0).out; ++round) {
            machine.device(0).refuse_copy(1);
            use({round % 32});
        }
        ASSERT_TRUE(counts(0).out);
    };
    fail_until_out();
    clock.advance(milliseconds(110));
    use({});
    ASSERT_FALSE(counts(0).out);
    fail_until_out();  // nothing has worked in between
    clock.advance(milliseconds(110));
    use({});
    EXPECT_TRUE(counts(0).out);
    clock.advance(milliseconds(110));
    use({});
    EXPECT_FALSE(counts(0).out);
}

TEST_F(FaultsTest, OneRefusedCallOfAnyKindLeavesNothingBehind) {
    for (int call = 1; call < 40; ++call) {
        machine.device(0).refuse_call(call);
        for (std::int32_t e = 0; e < 8; ++e) use({(call + 3 * e) % 32, (call + 5 * e) % 32});
        EXPECT_EQ(fetch(call % 32).value_or(true), true);
        machine.device(0).refuse_call(0);
        clock.advance(seconds(61));
        use({0});
        EXPECT_FALSE(counts(0).out) << call;
        ASSERT_EQ(cache->free_slots(0, 0) + static_cast<std::int32_t>(counts(0).resident), 8) << call;
        EXPECT_FALSE(residents().empty()) << call;
    }
}

TEST_F(FaultsTest, ADeviceLostWhileItShrinksEndsTheWait) {
    use({0, 1, 2, 3});
    auto lease = cache->acquire({0, 0});
    machine.device(0).lose();
    machine.device(1).lose();
    EXPECT_FALSE(cache->borrow(0, 8192));
    EXPECT_FALSE(cache->borrow(1, 8192));
    EXPECT_TRUE(counts(0).lost);
}

}  // namespace
}  // namespace coterie::expert_cache
