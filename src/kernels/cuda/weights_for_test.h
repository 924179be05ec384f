#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/device_array_for_test.h"
#include "kernels/cuda/pair_sort.h"
#include "quant/random_blocks.h"

namespace coterie::cuda::testing {

/// A matrix of random blocks and the scalar law for it.
struct Weights {
    Weights(DataType type, std::int64_t columns_wanted, std::int64_t count, std::uint64_t seed)
        : traits_(traits(type)), columns(columns_wanted), rows(count), bytes(*row_bytes(type, columns)) {
        SplitMix64 random(seed);
        data.resize(static_cast<std::size_t>(rows * bytes));
        RandomBlocks(type, 0.05f).fill(random, rows * columns / traits_.block_values, data.data());
    }
    float dot(std::int64_t row, const ActivationRow& x) const {
        return traits_.dot(data.data() + row * bytes, x);
    }

    const DataTypeTraits& traits_;
    std::int64_t columns;
    std::int64_t rows;
    std::int64_t bytes;
    std::vector<std::byte> data;
};

inline std::vector<ActivationForTest> random_rows(std::int64_t count, std::int64_t columns) {
    std::vector<ActivationForTest> rows;
    for (std::int64_t t = 0; t < count; ++t) {
        rows.emplace_back(
            random_values_for_test(static_cast<std::size_t>(columns), 7 + static_cast<std::uint64_t>(t)));
    }
    return rows;
}

inline std::vector<DataType> types_with_products() {
    std::vector<DataType> types;
    for (const DataTypeTraits& type : all_data_types()) {
        if (type.dot != nullptr) types.push_back(type.type);
    }
    return types;
}

/// Sorts pairs that lie on the device already.
class SortedPairsForTest {
  public:
    SortedPairsForTest(const std::uint64_t* slots, const std::int32_t* experts, std::int32_t pairs,
                       std::int32_t expert_count, std::int32_t tile_pairs)
        : most_tiles_(static_cast<std::int32_t>(SortedPairs::most_tiles_of(pairs, expert_count, tile_pairs))),
          tile_pairs_(tile_pairs),
          order_(static_cast<std::size_t>(pairs)),
          tiles_(static_cast<std::size_t>(most_tiles_)),
          tile_count_(1) {
        sort_pairs({slots, experts, pairs, expert_count, view()}, nullptr);
    }
    SortedPairs view() const {
        return {order_.get(), tiles_.get(), tile_count_.get(), tile_pairs_, most_tiles_};
    }
    std::vector<std::int32_t> order() const { return order_.read(); }
    std::vector<PairTile> tiles() const {
        std::vector<PairTile> tiles = tiles_.read();
        tiles.resize(static_cast<std::size_t>(tile_count_.read()[0]));
        return tiles;
    }

  private:
    std::int32_t most_tiles_;
    std::int32_t tile_pairs_;
    DeviceArray<std::int32_t> order_;
    DeviceArray<PairTile> tiles_;
    DeviceArray<std::int32_t> tile_count_;
};

}  // namespace coterie::cuda::testing
