#include "expert_cache/slots/slot_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;

struct SlotTableTest : testing::Test {
    SimulatedClock clock;
    FakeMachine machine{clock, {small_device(64 << 10)}, 0};
    FakeDevice& device = machine.device(0);
    std::vector<LayerShape> layers{{8, 5000}, {0, 0}, {4, 256}};
    SlotTable table{device, layers};
};

TEST_F(SlotTableTest, ReservesAddressesAndMapsOnlyWhatLayersGrowTo) {
    EXPECT_EQ(device.free_bytes(), std::uint64_t{64} << 10);
    EXPECT_EQ(table.slot_bytes(0), 5120u);  // on a boundary of 256 bytes
    EXPECT_EQ(table.slots(0), 0);
    ASSERT_TRUE(table.grow(0, 3));
    EXPECT_EQ(table.mapped_bytes(), 16384u);
    EXPECT_EQ(device.free_bytes(), std::uint64_t{48} << 10);
    EXPECT_NO_THROW(device.resolve(table.address(0, 2), 5000));
    EXPECT_THROW(device.resolve(table.address(0, 3), 5000), Error);
    table.check_integrity();
}

TEST_F(SlotTableTest, SlotsOfOtherLayersStandApart) {
    ASSERT_TRUE(table.grow(0, 8));
    ASSERT_TRUE(table.grow(2, 4));
    EXPECT_GE(static_cast<std::uint64_t>(table.address(2, 0)),
              static_cast<std::uint64_t>(table.address(0, 7)) + 5000);
    EXPECT_EQ(
        static_cast<std::uint64_t>(table.address(2, 1)) - static_cast<std::uint64_t>(table.address(2, 0)),
        256u);
}

TEST_F(SlotTableTest, ASlotLivesFromClaimToReclaim) {
    ASSERT_TRUE(table.grow(0, 2));
    const auto slot = table.claim(0, 6);
    ASSERT_EQ(slot, 0);
    EXPECT_EQ(table.state(0, 0), SlotState::Filling);
    table.publish(0, 0);
    EXPECT_EQ(table.expert(0, 0), 6);
    EXPECT_EQ(table.claim(0, 5), 1);
    EXPECT_EQ(table.claim(0, 4), std::nullopt);
    table.abandon(0, 1);
    table.retire(0, 0, 10);
    EXPECT_FALSE(table.reclaimable(0, 0, 10));
    EXPECT_TRUE(table.reclaimable(0, 0, 11));
    table.pin(0, 0);
    EXPECT_FALSE(table.reclaimable(0, 0, 11));
    table.unpin(0, 0);
    table.reclaim(0, 0);
    EXPECT_EQ(table.count(0, SlotState::Free), 2);
    table.check_integrity();
}

TEST_F(SlotTableTest, WrongMovesAreCaught) {
    ASSERT_TRUE(table.grow(0, 2));
    EXPECT_THROW(table.publish(0, 0), Error);
    EXPECT_THROW(table.retire(0, 0, 1), Error);
    EXPECT_THROW(table.reclaim(0, 0), Error);
    ASSERT_EQ(table.claim(0, 1), 0);
    EXPECT_THROW(table.shrink(0, 0), Error);
    EXPECT_THROW(static_cast<void>(table.grow(0, 9)), Error);
}

TEST_F(SlotTableTest, ShrinkingGivesMemoryBack) {
    ASSERT_TRUE(table.grow(0, 8));
    const std::uint64_t free = device.free_bytes();
    table.shrink(0, 2);
    EXPECT_EQ(table.slots(0), 2);
    EXPECT_EQ(device.free_bytes() - free, 40960u - 12288u);
    ASSERT_TRUE(table.grow(0, 8));
    EXPECT_EQ(device.free_bytes(), free);
}

TEST_F(SlotTableTest, ClaimsKeepBelowTheLimit) {
    ASSERT_TRUE(table.grow(0, 4));
    table.limit_claims(0, 1);
    EXPECT_EQ(table.claim(0, 1), 0);
    EXPECT_EQ(table.claim(0, 2), std::nullopt);
    table.limit_claims(0, 8);
    EXPECT_EQ(table.claim(0, 2), 1);
}

TEST_F(SlotTableTest, RefusedMemoryChangesNothing) {
    device.refuse_allocation(1);
    EXPECT_FALSE(table.grow(0, 4));
    EXPECT_EQ(table.slots(0), 0);
    table.check_integrity();
    EXPECT_TRUE(table.grow(0, 4));
    device.limit_memory(0);
    EXPECT_FALSE(table.grow(0, 8));
    EXPECT_EQ(table.slots(0), 4);
}

TEST_F(SlotTableTest, OneLoanAtATime) {
    const auto loan = table.map_loan(10000);
    ASSERT_TRUE(loan);
    EXPECT_EQ(table.loan_bytes(), 12288u);
    EXPECT_NO_THROW(device.resolve(*loan, 12288));
    EXPECT_FALSE(table.map_loan(1));
    table.unmap_loan();
    EXPECT_EQ(table.map_loan(10000), loan);
    EXPECT_FALSE(table.map_loan(std::uint64_t{1} << 40));
}

}  // namespace
}  // namespace coterie::expert_cache
