#include "engine/forward/layer_split.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace coterie::engine {
namespace {

std::vector<int> ends(const std::vector<std::uint64_t>& bytes, const std::vector<double>& shares) {
    std::vector<int> result;
    int begin = 0;
    for (const LayerRange range : split_layers(bytes, shares)) {
        EXPECT_EQ(range.begin, begin);
        EXPECT_GT(range.end, range.begin);
        result.push_back(begin = range.end);
    }
    return result;
}

using Ends = std::vector<int>;

TEST(LayerSplit, FollowsSharesOfBytes) {
    const std::vector<std::uint64_t> equal(48, 100);
    EXPECT_EQ(ends(equal, {1}), Ends{48});
    EXPECT_EQ(ends(equal, {6, 6}), (Ends{24, 48}));
    EXPECT_EQ(ends(equal, {3, 1}), (Ends{36, 48}));
    EXPECT_EQ(ends(equal, {1, 1, 1, 1}), (Ends{12, 24, 36, 48}));
    std::vector<std::uint64_t> heavy_end = equal;
    heavy_end.back() = 500;  // the output matrix
    EXPECT_EQ(ends(heavy_end, {1, 1}), (Ends{26, 48}));
}

TEST(LayerSplit, EveryDeviceGetsALayer) {
    EXPECT_EQ(ends({10, 10, 10}, {1, 1, 1}), (Ends{1, 2, 3}));
    EXPECT_EQ(ends({10, 10, 10}, {1, 0, 0}), (Ends{1, 2, 3}));
    EXPECT_EQ(ends({10, 10, 10, 10}, {0, 1}), (Ends{1, 4}));
    EXPECT_EQ(ends({10, 10, 10, 10}, {1, 0}), (Ends{3, 4}));
    EXPECT_EQ(ends({0, 0, 0}, {1, 1}), (Ends{2, 3}));
}

TEST(LayerSplit, NoBoundaryWouldBeNearerElsewhere) {
    constexpr std::uint64_t kSeed = 7;
    SplitMix64 random{kSeed};
    for (int round = 0; round < 300; ++round) {
        std::vector<std::uint64_t> bytes(2 + random.next() % 40);
        double total = 0;
        for (std::uint64_t& layer : bytes) total += static_cast<double>(layer = 1 + random.next() % 1000);
        const std::vector<double> shares{static_cast<double>(1 + random.next() % 9),
                                         static_cast<double>(1 + random.next() % 9)};
        const int end = ends(bytes, shares).front();
        const auto distance = [&](int boundary) {
            double before = 0;
            for (int l = 0; l < boundary; ++l)
                before += static_cast<double>(bytes[static_cast<std::size_t>(l)]);
            return std::abs(before - total * shares[0] / (shares[0] + shares[1]));
        };
        for (int other = 1; other < static_cast<int>(bytes.size()); ++other)
            ASSERT_LE(distance(end), distance(other) + 1e-9) << "round " << round << ", seed " << kSeed;
    }
}

}  // namespace
}  // namespace coterie::engine
