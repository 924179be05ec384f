#include "engine/forward/link_share.h"

#include <gtest/gtest.h>

namespace coterie::engine {
namespace {

TEST(LinkShare, HandsOverOnlyWhatEndsSoonerThatWay) {
    const cuda::LinkShare share = cheapest_share({.link = 50e-6, .cpu = 30e-6, .hand_off = 25e-6});
    EXPECT_EQ(share.of[0], 0);
    EXPECT_EQ(share.of[1], 0);  // 55 against 50: not clearly
    EXPECT_EQ(share.of[2], 1);  // 55 against 85 and 100
    EXPECT_EQ(share.of[3], 1);  // 85 against 115
    EXPECT_EQ(share.of[4], 1);  // 115 against 145; 100 with two
}

TEST(LinkShare, WhatSlowsTheCpuDownIsLeft) {
    const MissCosts alone{.link = 60e-6, .cpu = 40e-6, .hand_off = 10e-6};
    EXPECT_EQ(cheapest_share(alone).of[2], 1);  // 60 against 90
    MissCosts beside = alone;
    beside.contended_cpu = 75e-6;
    EXPECT_EQ(cheapest_share(beside).of[2], 0);  // 85 against 90: not clearly
}

TEST(LinkShare, ATimeThatSomethingElseMadeLongIsNotBelieved) {
    MissCosts disturbed{.link = 125e-6, .cpu = 3634e-6, .contended_cpu = 46e-6, .hand_off = 15e-6};
    const cuda::LinkShare share = cheapest_share(disturbed);
    disturbed.cpu = disturbed.contended_cpu;
    const cuda::LinkShare quiet = cheapest_share(disturbed);
    for (int missing = 1; missing <= cuda::kMostUsed; ++missing)
        EXPECT_EQ(share.of[missing], quiet.of[missing]);
    EXPECT_EQ(share.of[2], 0);
}

TEST(LinkShare, OneWayThatIsMuchSlowerIsNotTaken) {
    for (int missing = 1; missing <= cuda::kMostUsed; ++missing) {
        EXPECT_EQ(cheapest_share({.link = 1, .cpu = 1e-6, .hand_off = 1e-6}).of[missing], 0);
        EXPECT_EQ(cheapest_share({.link = 1e-6, .cpu = 1, .hand_off = 1e-6}).of[missing], missing);
    }
}

TEST(LinkShare, EqualWaysShareEqually) {
    for (int missing = 1; missing <= cuda::kMostUsed; ++missing)
        EXPECT_NEAR(cheapest_share({.link = 1, .cpu = 1, .hand_off = 0}).of[missing], missing / 2,
                    0.1 * missing + 1);
}

}  // namespace
}  // namespace coterie::engine
