#include "expert_cache/expert_cache.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "base/error.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Slots = std::vector<std::vector<std::int32_t>>;

constexpr std::uint64_t kSeed = 7;

/// A machine with some devices and a cache of two layers: 16 experts of 5000 bytes, 12 of 3100.
struct Rig {
    explicit Rig(const Slots& slots, CacheOptions options = manual_options(), std::int32_t uses = 1,
                 const FakeDeviceSpec& device = small_device(1 << 20))
        : machine(clock, std::vector<FakeDeviceSpec>(slots.size(), device), 0) {
        options.slots = slots;
        std::vector<Device*> devices;
        for (int d = 0; d < machine.size(); ++d) devices.push_back(&machine.device(d));
        cache = std::make_unique<ExpertCache>(devices, model.layers(), model.source(),
                                              counting_policies(uses), clock, options);
    }

    /// One step that uses these experts of a layer, with all uploads that follow from it.
    void use(std::int32_t layer, std::vector<std::int32_t> experts) {
        {
            CacheStep step = cache->begin_step();
            step.routed(layer, experts, static_cast<std::int32_t>(experts.size()));
        }
        EXPECT_TRUE(cache->settle(seconds(1)));
        cache->check_integrity();
    }
    bool has(ExpertKey key) {
        const auto found = cache->find(key);
        if (!found) return false;
        EXPECT_TRUE(model.matches(machine.device(found->device), found->address, key));
        return true;
    }
    std::int32_t residents(std::int32_t layer) {
        std::int32_t count = 0;
        for (std::int32_t e = 0; e < model.layers()[static_cast<std::size_t>(layer)].experts; ++e) {
            count += has({layer, e});
        }
        return count;
    }
    DeviceStatistics counts(std::size_t device = 0) { return cache->statistics().devices[device]; }

    SimulatedClock clock;
    FakeMachine machine;
    HostModel model{{{16, 5000}, {12, 3100}}, HostMemory::Pageable, kSeed};
    std::unique_ptr<ExpertCache> cache;
};

std::vector<ExpertKey> keys(std::int32_t layer, std::int32_t count) {
    std::vector<ExpertKey> result;
    for (std::int32_t e = 0; e < count; ++e) result.push_back({layer, e});
    return result;
}

TEST(ExpertCache, AMissedExpertIsResidentLater) {
    Rig rig({{8, 8}});
    EXPECT_FALSE(rig.has({0, 3}));
    rig.use(0, {3, 5});
    EXPECT_TRUE(rig.has({0, 3}));
    EXPECT_TRUE(rig.has({0, 5}));
    EXPECT_FALSE(rig.has({1, 3}));
    rig.use(0, {3});
    const CacheStatistics statistics = rig.cache->statistics();
    EXPECT_EQ(statistics.tokens, 2u);
    EXPECT_EQ(statistics.hits, 1u);
    EXPECT_EQ(statistics.misses, 2u);
    EXPECT_EQ(statistics.devices[0].uploads, 2u);
    EXPECT_EQ(statistics.devices[0].paid_back, 1u);
    EXPECT_EQ(statistics.devices[0].uploaded_bytes, 10000u);
}

TEST(ExpertCache, LayersBeforeTheFirstGetNoMemoryAtAnySize) {
    SimulatedClock clock;
    const HostModel model({{16, 5000}, {0, 0}, {12, 3100}, {12, 3100}}, HostMemory::Pageable, kSeed);
    FakeMachine machine(clock, {small_device(1 << 20)}, 0);
    CacheOptions options = manual_options();
    options.bytes = {50000};
    options.first_layer = 2;
    ExpertCache cache({&machine.device(0)}, model.layers(), model.source(), counting_policies(1), clock,
                      options);
    for (const std::uint64_t bytes : {50000, 0, 80000}) {
        cache.resize(0, bytes);
        EXPECT_EQ(cache.slots(0, 0), 0);
        EXPECT_EQ(cache.slots(0, 2) > 0, bytes > 0);
        EXPECT_EQ(cache.slots(0, 3), cache.slots(0, 2));
        {
            CacheStep step = cache.begin_step();
            for (const std::int32_t layer : {0, 2, 3}) step.routed(layer, std::vector{1, 2}, 2);
        }
        EXPECT_TRUE(cache.settle(seconds(1)));
        EXPECT_FALSE(cache.find({0, 1}).has_value());
        EXPECT_EQ(cache.find({2, 1}).has_value(), bytes > 0);
        cache.check_integrity();
    }
}

TEST(ExpertCache, DevicesMayEachHaveLayersOfTheirOwn) {
    SimulatedClock clock;
    const HostModel model({{16, 5000}, {0, 0}, {12, 3100}, {12, 3100}}, HostMemory::Pageable, kSeed);
    FakeMachine machine(clock, {small_device(1 << 20), small_device(1 << 20)}, 0);
    CacheOptions options = manual_options();
    options.bytes = {50000, 50000};
    options.layers = {{0, 2}, {2, 4}};
    ExpertCache cache({&machine.device(0), &machine.device(1)}, model.layers(), model.source(),
                      counting_policies(1), clock, options);
    for (const std::uint64_t bytes : {50000, 0, 80000}) {
        for (const std::int32_t device : {0, 1}) cache.resize(device, bytes);
        for (std::int32_t layer = 0; layer < 4; ++layer) {
            EXPECT_EQ(cache.slots(0, layer) > 0, bytes > 0 && layer == 0) << layer;
            EXPECT_EQ(cache.slots(1, layer) > 0, bytes > 0 && layer >= 2) << layer;
        }
        {
            CacheStep step = cache.begin_step();
            for (const std::int32_t layer : {0, 2, 3}) step.routed(layer, std::vector{1, 2}, 2);
        }
        EXPECT_TRUE(cache.settle(seconds(1)));
        for (const std::int32_t layer : {0, 2, 3}) {
            const auto found = cache.find({layer, 1});
            EXPECT_EQ(found ? found->device : -1, bytes == 0 ? -1 : layer == 0 ? 0 : 1) << layer;
        }
        cache.check_integrity();
    }
}

TEST(ExpertCache, ALayersResidentsAreThoseThatFindNamesAndChangeWithTheVersion) {
    Rig rig({{8, 8}, {8, 8}});
    std::vector<std::uint64_t> addresses(16);
    std::uint32_t version = rig.cache->version();
    for (std::int32_t round = 0; round < 6; ++round) {
        rig.use(0, {round, (5 * round + 1) % 16, (3 * round + 2) % 16});
        for (std::int32_t device = 0; device < 2; ++device) {
            rig.cache->residents(device, 0, addresses);
            for (std::int32_t e = 0; e < 16; ++e) {
                const auto found = rig.cache->find({0, e});
                const bool here = found && found->device == device;
                EXPECT_EQ(addresses[static_cast<std::size_t>(e)],
                          here ? static_cast<std::uint64_t>(found->address) : 0u);
            }
        }
        EXPECT_NE(rig.cache->version(), version) << "round " << round;
        version = rig.cache->version();
    }
    EXPECT_FALSE(rig.cache->maintain());
    EXPECT_EQ(rig.cache->version(), version);
}

TEST(ExpertCache, ThePolicyDecidesWhoEntersAndWhoLeaves) {
    Rig rig({{8, 8}}, manual_options(), 2);
    rig.use(0, {0});
    EXPECT_FALSE(rig.has({0, 0}));
    for (int round = 0; round < 3; ++round) rig.use(0, {0, 1, 2, 3, 4, 5});
    EXPECT_EQ(rig.residents(0), 6);  // two of the eight are spare
    rig.use(0, {0, 1, 2, 3, 4});
    rig.use(0, {9});
    EXPECT_FALSE(rig.has({0, 9}));
    for (int round = 0; round < 3; ++round) rig.use(0, {9});
    EXPECT_TRUE(rig.has({0, 9}));
    EXPECT_FALSE(rig.has({0, 5}));
    EXPECT_EQ(rig.residents(0), 6);
}

TEST(ExpertCache, ExpertsGoToAFreeSlotAndAllDevicesAreUsed) {
    Rig rig({{4, 0}, {8, 4}});
    rig.use(0, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_EQ(rig.residents(0), 9);
    EXPECT_EQ(rig.counts(0).resident, 3u);
    EXPECT_EQ(rig.counts(1).resident, 6u);
    rig.use(1, {0, 1, 2});
    EXPECT_EQ(rig.counts(1).resident, 9u);
}

TEST(ExpertCache, PreloadFillsTheHottestFirstAndLeavesTheSpareSlots) {
    Rig rig({{8, 12}});
    auto order = keys(0, 16);
    std::reverse(order.begin(), order.end());
    rig.cache->preload(order);
    EXPECT_EQ(rig.residents(0), 6);
    EXPECT_TRUE(rig.has({0, 15}));
    EXPECT_FALSE(rig.has({0, 9}));
    rig.cache->preload(keys(1, 12));
    EXPECT_EQ(rig.residents(1), 12);  // all have a slot: none is spare
    rig.cache->check_integrity();
}

TEST(ExpertCache, BytesPerDeviceAreSharedEquallyByTheLayers) {
    CacheOptions options = manual_options();
    options.bytes = {80 << 10};
    SimulatedClock clock;
    FakeMachine machine(clock, {small_device(1 << 20)}, 0);
    const HostModel model({{16, 5000}, {0, 0}, {12, 3100}}, HostMemory::Pinned, kSeed);
    ExpertCache cache({&machine.device(0)}, model.layers(), model.source(), counting_policies(1), clock,
                      options);
    EXPECT_EQ(cache.slots(0, 0), 8);
    EXPECT_EQ(cache.slots(0, 1), 0);
    EXPECT_EQ(cache.slots(0, 2), 12);
    EXPECT_LE(cache.statistics().devices[0].mapped_bytes, std::uint64_t{80} << 10);
}

TEST(ExpertCache, AReplacedSlotIsNotTouchedWhileAStepMayReadIt) {
    Rig rig({{4, 0}});
    rig.use(0, {0, 1, 2});
    CacheStep reader = rig.cache->begin_step();
    const auto before = rig.cache->find({0, 0});
    ASSERT_TRUE(before);
    rig.use(0, {4});
    rig.use(0, {5});
    rig.use(0, {6});
    // One of the three has given way to the one copy that a spare slot allowed; its bytes are still there.
    EXPECT_EQ(rig.residents(0), 3);
    EXPECT_EQ(rig.counts().evictions, 1u);
    EXPECT_TRUE(rig.model.matches(rig.machine.device(0), before->address, {0, 0}));
    { const CacheStep ends = std::move(reader); }
    rig.use(0, {6});
    EXPECT_EQ(rig.counts().evictions, 2u);
}

TEST(ExpertCache, ALeaseKeepsTheBytesUntilItGoes) {
    Rig rig({{4, 0}});
    rig.use(0, {0, 1, 2});
    std::optional<ExpertLease> lease = rig.cache->acquire({0, 1});
    ASSERT_TRUE(lease);
    for (int round = 0; round < 20; ++round) rig.use(0, {4 + round % 8, 5 + round % 8});
    EXPECT_TRUE(rig.model.matches(rig.machine.device(0), lease->address(), {0, 1}));
    EXPECT_TRUE(rig.has({0, 1}));
    const DeviceAddress address = lease->address();
    lease.reset();
    for (int round = 0; round < 20; ++round) rig.use(0, {4 + round % 8, 5 + round % 8});
    EXPECT_FALSE(rig.has({0, 1}));
    EXPECT_FALSE(rig.model.matches(rig.machine.device(0), address, {0, 1}));
    EXPECT_FALSE(rig.cache->acquire({0, 1}));
}

TEST(ExpertCache, AStepsOwnExpertsAreNotEvicted) {
    Rig rig({{4, 0}});
    rig.use(0, {0, 1, 2});
    {
        CacheStep step = rig.cache->begin_step();
        step.routed(0, std::vector<std::int32_t>{0, 1, 2}, 3);
        for (int round = 0; round < 9; ++round) rig.use(0, {4 + round, 5 + round});
        for (std::int32_t e = 0; e < 3; ++e) EXPECT_TRUE(rig.has({0, e}));
    }
    for (int round = 0; round < 9; ++round) rig.use(0, {4 + round, 5 + round});
    EXPECT_FALSE(rig.has({0, 2}));
}

TEST(ExpertCache, AFetchIsReadInTheOrderOfItsStreamAndStays) {
    Rig rig({{8, 0}}, manual_options(), 99);
    const auto stream = rig.machine.device(0).create_fake_stream();
    bool right = false;
    {
        CacheStep step = rig.cache->begin_step();
        step.routed(0, std::vector<std::int32_t>{7}, 1);
        const auto address = step.fetch({0, 7}, 0, *stream);
        ASSERT_TRUE(address);
        EXPECT_FALSE(rig.cache->find({0, 7}));
        EXPECT_FALSE(step.fetch({0, 7}, 0, *stream));
        stream->launch(
            [&] {
                right = rig.model.matches(rig.machine.device(0), *address, {0, 7});
            },
            Nanoseconds(10));
        stream->synchronise();
    }
    EXPECT_TRUE(right);
    EXPECT_TRUE(rig.has({0, 7}));
    EXPECT_EQ(rig.counts().fetches, 1u);
    rig.use(0, {7});
    EXPECT_EQ(rig.counts().paid_back, 1u);
}

TEST(ExpertCache, AStepLargerThanThePoolOverflowsToTheCpu) {
    Rig rig({{4, 0}}, manual_options(), 99);
    const auto stream = rig.machine.device(0).create_fake_stream();
    std::vector<std::int32_t> used(16);
    std::iota(used.begin(), used.end(), 0);
    {
        CacheStep step = rig.cache->begin_step();
        step.routed(0, used, 16);
        std::vector<std::pair<ExpertKey, DeviceAddress>> fetched;
        for (const std::int32_t e : used) {
            if (const auto address = step.fetch({0, e}, 0, *stream)) fetched.push_back({{0, e}, *address});
        }
        EXPECT_EQ(fetched.size(), 4u);
        EXPECT_EQ(rig.cache->free_slots(0, 0), 0);
        stream->synchronise();
        rig.cache->settle(seconds(1));
        for (const auto& [key, address] : fetched) {
            EXPECT_TRUE(rig.model.matches(rig.machine.device(0), address, key));
        }
        EXPECT_EQ(rig.residents(0), 4);
    }
    EXPECT_EQ(rig.residents(0), 3);  // the spare slot is free again
    rig.cache->check_integrity();
}

TEST(ExpertCache, FreedSlotsArePoisoned) {
    Rig rig({{4, 0}});
    rig.use(0, {0, 1, 2});
    const auto victim = rig.cache->find({0, 0});
    rig.use(0, {5, 1, 2});
    ASSERT_FALSE(rig.has({0, 0}));
    rig.cache->settle(seconds(1));
    rig.clock.advance(milliseconds(1));
    rig.machine.pump();
    const std::byte* bytes = rig.machine.device(0).resolve(victim->address, 5000);
    EXPECT_TRUE(std::all_of(bytes, bytes + 5000, [](std::byte b) { return b == FakeDevice::kPoison; }));
}

TEST(ExpertCache, AFetchWaitsUntilItsSlotIsPoisoned) {
    FakeDeviceSpec device = small_device(1 << 20);
    device.memory_rate = 1e6;  // 5 ms a slot, a thousand times as long as a copy
    Rig rig({{4, 0}}, manual_options(), 1, device);
    rig.use(0, {0, 1, 2});
    rig.use(0, {5, 1, 2});
    const auto stream = rig.machine.device(0).create_fake_stream();
    bool right = false;
    CacheStep step = rig.cache->begin_step();
    const auto address = step.fetch({0, 9}, 0, *stream);
    ASSERT_TRUE(address);
    stream->launch(
        [&] {
            right = rig.model.matches(rig.machine.device(0), *address, {0, 9});
        },
        milliseconds(20));
    stream->synchronise();
    EXPECT_TRUE(right);
}

TEST(ExpertCache, StepsThatDoNotLearnMoveNothing) {
    Rig rig({{8, 8}});
    {
        CacheStep step = rig.cache->begin_step(Learning::Off);
        step.routed(0, std::vector<std::int32_t>{1, 2}, 2);
    }
    rig.cache->settle(seconds(1));
    EXPECT_EQ(rig.residents(0), 0);
    EXPECT_EQ(rig.cache->statistics().misses, 2u);
}

TEST(ExpertCache, AFullLogIsWorkedInDuringTheStep) {
    CacheOptions options = manual_options();
    options.logged_uses = 8;
    Rig rig({{8, 8}}, options);
    std::vector<std::int32_t> experts;
    for (std::int32_t token = 0; token < 100; ++token) experts.push_back(token % 4);
    {
        CacheStep step = rig.cache->begin_step();
        step.routed(0, experts, 1);
    }
    rig.cache->settle(seconds(1));
    EXPECT_EQ(rig.residents(0), 4);
    EXPECT_EQ(rig.cache->statistics().tokens, 100u);
}

TEST(ExpertCache, ATokenMayChooseMoreExpertsThanARunOfTheLogHolds) {
    Rig rig({{16, 0}});
    std::vector<std::int32_t> experts(150, 3);
    experts.front() = 1;
    experts.back() = 2;
    for (int token = 0; token < 2; ++token) {
        {
            CacheStep step = rig.cache->begin_step();
            step.routed(0, experts, 150);
        }
        rig.cache->settle(seconds(1));
    }
    EXPECT_EQ(rig.residents(0), 3);
    EXPECT_EQ(rig.cache->statistics().tokens, 2u);
    EXPECT_EQ(rig.cache->statistics().misses, 150u);
    EXPECT_EQ(rig.cache->statistics().hits, 150u);
}

TEST(ExpertCache, FindGivesTheSameForOneAndForMany) {
    Rig rig({{4, 4}, {4, 4}});
    const std::vector<std::int32_t> all{0, 1, 2, 3, 4, 5, 6, 7};
    for (std::int32_t round = 0; round < 8; ++round) {
        rig.use(0, {round, (3 * round + 1) % 16});
        std::vector<ResidentExpert> found(all.size());
        rig.cache->find(0, all, found);
        for (const std::int32_t expert : all) {
            const auto one = rig.cache->find({0, expert});
            const ResidentExpert& of = found[static_cast<std::size_t>(expert)];
            ASSERT_EQ(of.device, one ? one->device : -1);
            if (one) {
                ASSERT_EQ(of.address, one->address);
            }
        }
    }
}

TEST(ExpertCache, ASingleSlotIsRefilledAfterItsVictimHasGone) {
    Rig rig({{1, 0}});
    rig.use(0, {3});
    EXPECT_TRUE(rig.has({0, 3}));
    for (int round = 0; round < 4; ++round) rig.use(0, {5});
    EXPECT_FALSE(rig.has({0, 3}));
    EXPECT_TRUE(rig.has({0, 5}));
}

TEST(ExpertCache, WithoutSlotsOrDevicesEverythingIsAMiss) {
    Rig empty({{0, 0}});
    empty.use(0, {1, 2});
    EXPECT_EQ(empty.residents(0), 0);
    SimulatedClock clock;
    ExpertCache none({}, empty.model.layers(), empty.model.source(), counting_policies(1), clock,
                     manual_options());
    { none.begin_step().routed(0, std::vector<std::int32_t>{1}, 1); }
    EXPECT_EQ(none.statistics().misses, 1u);
}

TEST(ExpertCache, ADeviceWithoutTheMemoryIsRefusedWithTheWayOut) {
    try {
        SimulatedClock clock;
        FakeMachine machine(clock, {small_device(16 << 10)}, 0);
        const HostModel model({{16, 5000}}, HostMemory::Pinned, kSeed);
        CacheOptions options = manual_options();
        options.slots = {{16}};
        ExpertCache cache({&machine.device(0)}, model.layers(), model.source(), counting_policies(1), clock,
                          options);
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
        EXPECT_NE(std::string(error.what()).find("--vram"), std::string::npos);
    }
}

TEST(ExpertCache, WithItsThreadUploadsArriveByThemselves) {
    SteadyClock clock;
    FakeMachine machine(clock, {small_device(1 << 20)}, 0);
    const HostModel model({{16, 5000}}, HostMemory::Pinned, kSeed);
    CacheOptions options;
    options.slots = {{8}};
    ExpertCache cache({&machine.device(0)}, model.layers(), model.source(), counting_policies(1), clock,
                      options);
    { cache.begin_step().routed(0, std::vector<std::int32_t>{1}, 1); }
    const Nanoseconds deadline = clock.now() + seconds(20);
    while (!cache.find({0, 1}) && clock.now() < deadline) clock.wait_until(clock.now() + milliseconds(1));
    const auto found = cache.find({0, 1});
    ASSERT_TRUE(found);
    EXPECT_TRUE(model.matches(machine.device(0), found->address, {0, 1}));
}

}  // namespace
}  // namespace coterie::expert_cache
