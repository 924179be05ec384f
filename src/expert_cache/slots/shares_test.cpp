#include "expert_cache/slots/shares.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace coterie::expert_cache {
namespace {

constexpr std::uint64_t kGranule = 4096;

TEST(ShareOut, EqualWeightsGetEqualBytes) {
    std::vector<Share> shares{{.weight = 1, .slot_bytes = 4096, .capacity = 100},
                              {.weight = 1, .slot_bytes = 8192, .capacity = 100}};
    share_out(shares, 64 * kGranule, kGranule);
    EXPECT_EQ(shares[0].slots, 32);
    EXPECT_EQ(shares[1].slots, 16);
}

TEST(ShareOut, WhatAFullLayerLeavesGoesToTheOthers) {
    std::vector<Share> shares{{.weight = 3, .slot_bytes = 4096, .capacity = 4},
                              {.weight = 1, .slot_bytes = 4096, .capacity = 100}};
    share_out(shares, 64 * kGranule, kGranule);
    EXPECT_EQ(shares[0].slots, 4);
    EXPECT_EQ(shares[1].slots, 60);
}

TEST(ShareOut, LayersWithoutWeightOrExpertsGetNothing) {
    std::vector<Share> shares{{.weight = 0, .slot_bytes = 4096, .capacity = 4},
                              {.weight = 1, .slot_bytes = 0, .capacity = 0}};
    share_out(shares, 64 * kGranule, kGranule);
    EXPECT_EQ(shares[0].slots, 0);
    EXPECT_EQ(shares[1].slots, 0);
}

TEST(ShareOut, NeverMapsMoreThanThereIs) {
    constexpr std::uint64_t kSeed = 5;
    SplitMix64 random(kSeed);
    for (int round = 0; round < 1000; ++round) {
        std::vector<Share> shares(1 + random.next() % 6);
        for (Share& share : shares) {
            share = {.weight = random.next_float(),
                     .slot_bytes = 256 * (1 + random.next() % 100),
                     .capacity = static_cast<std::int32_t>(random.next() % 40)};
        }
        const std::uint64_t bytes = random.next() % (200 * kGranule);
        share_out(shares, bytes, kGranule);
        std::uint64_t mapped = 0;
        for (const Share& share : shares) {
            EXPECT_LE(share.slots, share.capacity);
            const std::uint64_t used = static_cast<std::uint64_t>(share.slots) * share.slot_bytes;
            mapped += (used + kGranule - 1) / kGranule * kGranule;
        }
        EXPECT_LE(mapped, bytes) << "seed " << kSeed << ", round " << round;
    }
}

TEST(SpareOf, OneInFourUpToWhatIsWanted) {
    EXPECT_EQ(spare_of(1, 2, Complete::No), 0);
    EXPECT_EQ(spare_of(2, 2, Complete::No), 1);
    EXPECT_EQ(spare_of(7, 2, Complete::No), 1);
    EXPECT_EQ(spare_of(8, 2, Complete::No), 2);
    EXPECT_EQ(spare_of(100, 2, Complete::No), 2);
    EXPECT_EQ(spare_of(100, 0, Complete::No), 0);
    EXPECT_EQ(spare_of(100, 2, Complete::Yes), 0);
}

}  // namespace
}  // namespace coterie::expert_cache
