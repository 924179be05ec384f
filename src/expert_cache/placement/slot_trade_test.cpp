#include "expert_cache/placement/slot_trade.h"

#include <gtest/gtest.h>

namespace coterie::expert_cache {
namespace {

/// Three layers of 16 experts, 2 used; the second one's experts are twice as large; one without experts.
struct Trade {
    ModelFacts model;
    Costs costs;

    Trade() {
        for (const std::uint64_t bytes : {1000, 2000, 1000}) {
            model.layers.push_back({.experts = 16, .experts_used = 2, .expert_bytes = bytes});
        }
        model.layers.push_back({});
        costs.kinds = {"all"};
        costs.cpu = {.read_bytes_per_second = 1e9, .compute = {{}}};
        costs.devices = {{.link_bytes_per_second = 1e9,
                          .contended_link_bytes_per_second = 1e9,
                          .memory_bytes_per_second = 1e11,
                          .compute = {{}}}};
        costs.ram_bytes_per_second = 1e9;
    }
    static std::vector<double> even() { return std::vector<double>(16, 1.0); }
    static std::vector<double> skewed() {
        std::vector<double> uses(16, 0.0);
        uses[3] = uses[7] = 8;
        return uses;
    }
    std::optional<SlotCounts> better(const UsageCounts& usage, const SlotCounts& now) const {
        SlotTrade trade(model, usage, costs, 0);
        for (const auto& device : now) trade.add_device(device);
        return trade.better();
    }
};

std::uint64_t bytes_of(const ModelFacts& model, const std::vector<std::int32_t>& slots) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        bytes += model.layers[i].expert_bytes * static_cast<std::uint64_t>(slots[i]);
    }
    return bytes;
}

TEST(SlotTradeTest, SlotsGoWhereTheyAreUsed) {
    const Trade trade;
    const SlotCounts now{{6, 6, 6, 0}};
    const auto better = trade.better({Trade::even(), Trade::even(), Trade::skewed(), {}}, now);
    ASSERT_TRUE(better);
    EXPECT_EQ((*better)[0][2], 2);  // more would never be hit
    EXPECT_GT((*better)[0][0] + (*better)[0][1], 12);
    EXPECT_LE(bytes_of(trade.model, (*better)[0]), bytes_of(trade.model, now[0]));
    EXPECT_FALSE(trade.better({Trade::even(), Trade::even(), Trade::skewed(), {}}, *better));
}

TEST(SlotTradeTest, DevicesKeepTheirBytesAndLayersOnTheCpuStayThere) {
    const Trade trade;
    const SlotCounts now{{0, 4, 8, 0}, {0, 2, 3, 0}};
    const auto better = trade.better({Trade::even(), Trade::skewed(), Trade::even(), {}}, now);
    ASSERT_TRUE(better);
    for (std::size_t d = 0; d < 2; ++d) {
        EXPECT_EQ((*better)[d][0], 0);
        EXPECT_LE(bytes_of(trade.model, (*better)[d]), bytes_of(trade.model, now[d]));
    }
    EXPECT_LT(slots_of_layer(*better, 1), 6);
}

TEST(SlotTradeTest, NothingMovesForNoise) {
    const Trade trade;
    std::vector<double> nearly = Trade::even();
    nearly[0] = 1.001;
    EXPECT_FALSE(trade.better({nearly, Trade::even(), Trade::even(), {}}, {{16, 4, 8, 0}}));
}

}  // namespace
}  // namespace coterie::expert_cache
