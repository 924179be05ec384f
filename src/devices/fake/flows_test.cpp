#include "devices/fake/flows.h"

#include <gtest/gtest.h>

namespace coterie::fake {
namespace {

using std::chrono::seconds;

TEST(Flows, OneFlowRunsAtItsOwnRate) {
    Flows flows(100);
    flows.add(20, 10);
    EXPECT_EQ(flows.until_next_done(), seconds(2));
}

TEST(Flows, WithoutASharedRateNobodyDisturbsAnother) {
    Flows flows(0);
    flows.add(20, 10);
    flows.add(1e6, 1e5);
    EXPECT_EQ(flows.until_next_done(), seconds(2));
}

TEST(Flows, EqualFlowsShareEqually) {
    Flows flows(10);
    flows.add(10, 10);
    flows.add(20, 10);
    EXPECT_EQ(flows.until_next_done(), seconds(2));  // 5 each
}

TEST(Flows, WhatASlowFlowLeavesGoesToTheFastOne) {
    Flows flows(10);
    const FlowId fast = flows.add(8, 100);
    const FlowId slow = flows.add(100, 2);
    EXPECT_EQ(flows.until_next_done(), seconds(1));  // 10 - 2
    flows.advance(seconds(1));
    EXPECT_TRUE(flows.done(fast));
    EXPECT_FALSE(flows.done(slow));
}

TEST(Flows, AnEndedFlowFreesItsPart) {
    Flows flows(10);
    const FlowId first = flows.add(5, 10);
    flows.add(15, 10);
    flows.advance(seconds(1));
    flows.remove(first);
    EXPECT_EQ(flows.until_next_done(), seconds(1));  // 10 left at 10
}

TEST(Flows, AnEndlessFlowTakesItsPartAndNeverEnds) {
    Flows flows(10);
    const FlowId reading = flows.add(Flows::kEndless, 8);
    EXPECT_EQ(flows.until_next_done(), Nanoseconds::max());
    flows.add(5, 10);
    EXPECT_EQ(flows.until_next_done(), seconds(1));
    flows.advance(seconds(1));
    EXPECT_FALSE(flows.done(reading));
}

}  // namespace
}  // namespace coterie::fake
