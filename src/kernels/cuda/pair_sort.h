#pragma once

#include <algorithm>
#include <cstdint>

struct CUstream_st;

/// A step's (token, expert) pairs put in the order of their experts, for products that read an expert's
/// weights once for many tokens.
namespace coterie::cuda {

using StreamHandle = CUstream_st*;

/// Neighbours in SortedPairs::order that share an expert.
struct PairTile {
    std::int32_t first;
    std::int32_t end;
};

/// Memory on the device, filled by `sort_pairs`. Empty: order is null.
struct SortedPairs {
    std::int32_t* order = nullptr;  ///< [pairs]: those with a slot, by expert; the rest of it is undefined
    PairTile* tiles = nullptr;      ///< [most_tiles]
    std::int32_t* tile_count = nullptr;
    std::int32_t tile_pairs = 0;  ///< of a tile at most: kNarrow or kWide
    std::int32_t most_tiles = 0;

    static constexpr std::int32_t kNarrow = 32;
    static constexpr std::int32_t kWide = 64;

    /// Pairs that one tile should hold, for experts that are chosen about equally often.
    static constexpr std::int32_t good_tile(std::int64_t pairs, std::int64_t experts) {
        return pairs < 96 * experts ? kNarrow : kWide;
    }
    /// Every expert has at most one tile that is not full.
    static constexpr std::int64_t most_tiles_of(std::int64_t pairs, std::int64_t experts,
                                                std::int64_t tile_pairs) {
        return pairs / tile_pairs + std::min(pairs, experts);
    }
};

struct PairSortArgs {
    const std::uint64_t* slots = nullptr;   ///< [pairs]: 0: left out
    const std::int32_t* experts = nullptr;  ///< [pairs]
    std::int32_t pairs = 0;
    std::int32_t expert_count = 0;  ///< at most kMostExperts (moe.h)
    SortedPairs out;
};

/// Pairs of one expert stand in no particular order. Throws Internal where the launch fails.
void sort_pairs(const PairSortArgs& args, StreamHandle stream);

}  // namespace coterie::cuda
