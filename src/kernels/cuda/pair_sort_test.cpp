#include "kernels/cuda/pair_sort.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"
#include "kernels/cuda/weights_for_test.h"

namespace coterie::cuda {
namespace {

using namespace testing;

/// Every pair with a slot stands in exactly one tile, with pairs of its expert alone; only an expert's last
/// tile is not full.
void expect_sorted(const std::vector<std::uint64_t>& slots, const std::vector<std::int32_t>& experts,
                   std::int32_t expert_count, std::int32_t tile_pairs) {
    const DeviceArray<std::uint64_t> device_slots(slots);
    const DeviceArray<std::int32_t> device_experts(experts);
    const auto pairs = static_cast<std::int32_t>(slots.size());
    const SortedPairsForTest sorted(device_slots.get(), device_experts.get(), pairs, expert_count,
                                    tile_pairs);
    const std::vector<std::int32_t> order = sorted.order();
    std::vector<int> seen(slots.size());
    std::vector<int> open_tiles(static_cast<std::size_t>(expert_count));
    std::int32_t begin = 0;
    for (const PairTile& tile : sorted.tiles()) {
        ASSERT_EQ(tile.first, begin);
        ASSERT_GT(tile.end, tile.first);
        ASSERT_LE(tile.end - tile.first, tile_pairs);
        begin = tile.end;
        const auto first_pair = static_cast<std::size_t>(order[static_cast<std::size_t>(tile.first)]);
        const std::int32_t expert = experts[first_pair];
        int& open = open_tiles[static_cast<std::size_t>(expert)];
        EXPECT_EQ(open, 0) << "a tile after one of expert " << expert << " that is not full";
        open += tile.end - tile.first < tile_pairs;
        for (std::int32_t i = tile.first; i < tile.end; ++i) {
            const auto pair = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
            ASSERT_LT(pair, slots.size());
            EXPECT_EQ(experts[pair], expert);
            ++seen[pair];
        }
    }
    for (std::size_t p = 0; p < slots.size(); ++p) EXPECT_EQ(seen[p], slots[p] != 0) << "pair " << p;
}

TEST(PairSort, PutsEveryPairWithASlotIntoOneTileOfItsExpert) {
    SplitMix64 random(11);
    for (const std::int32_t expert_count : {1, 3, 128, 1024}) {
        for (const std::size_t pairs :
             {std::size_t{1}, std::size_t{63}, std::size_t{1025}, std::size_t{20000}}) {
            for (const std::int32_t tile_pairs : {32, 64}) {
                std::vector<std::uint64_t> slots(pairs);
                std::vector<std::int32_t> experts(pairs);
                for (std::size_t p = 0; p < pairs; ++p) {
                    const auto e =
                        static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(expert_count));
                    experts[p] = random.next() % 3 == 0 ? 0 : e;  // expert 0 is a giant
                    slots[p] = experts[p] % 5 == 2 ? 0 : 4096;
                }
                SCOPED_TRACE(std::to_string(pairs) + " pairs of " + std::to_string(expert_count) +
                             " experts");
                expect_sorted(slots, experts, expert_count, tile_pairs);
            }
        }
    }
}

TEST(PairSort, MakesNoTileWherePairsHaveNoSlots) {
    expect_sorted(std::vector<std::uint64_t>(100, 0), std::vector<std::int32_t>(100, 2), 4, 32);
}

TEST(PairSort, BoundsTheTiles) {
    EXPECT_EQ(SortedPairs::most_tiles_of(4096, 128, 32), 256);
    EXPECT_EQ(SortedPairs::most_tiles_of(3, 128, 32), 3);
    // 127 experts of one pair each and one of 33 need 127 + 2 tiles.
    EXPECT_GE(SortedPairs::most_tiles_of(160, 128, 32), 129);
}

}  // namespace
}  // namespace coterie::cuda
