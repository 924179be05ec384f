#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/types/group.h"

/// Decoding and the canonical dot product of whole rows, for any block type.
///
/// A block type is a packed struct with the file's layout, `kValues` (a multiple of 32) and `group(g)`, which
/// describes its g-th 32 values in one of the forms of group.h.
namespace coterie::blocks {

/// Blocks stand at any address, so they are copied out.
template <typename Block>
Block load_block(const std::byte* row, std::int64_t index) {
    static_assert(alignof(Block) == 1);
    Block block;
    std::memcpy(&block, row + index * static_cast<std::int64_t>(sizeof(Block)), sizeof(Block));
    return block;
}

template <typename Block>
auto load_group(const std::byte* row, std::int64_t group) {
    constexpr std::int64_t kGroups = Block::kValues / kGroupValues;
    return load_block<Block>(row, group / kGroups).group(static_cast<int>(group % kGroups));
}

template <typename Block>
void decode_row(const std::byte* row, std::int64_t values, float* out) {
    for (std::int64_t g = 0; g < values / kGroupValues; ++g) {
        const auto group = load_group<Block>(row, g);
        for (int i = 0; i < kGroupValues; ++i) out[g * kGroupValues + i] = group.value(i);
    }
}

inline ActivationGroup activation_group(const ActivationRow& x, std::int64_t g) {
    return {x.quants + g * kGroupValues, x.scales[g], x.scaled_sums[g], x.half_sums + 2 * g};
}

template <typename Block>
float canonical_dot(const std::byte* row, const ActivationRow& activation) {
    const std::int64_t groups = activation.columns / kGroupValues;
    float accumulators[kAccumulators] = {};
    for (std::int64_t g = 0; g < groups; ++g) {
        float& acc = accumulators[g % kAccumulators];
        acc = load_group<Block>(row, g).accumulate(activation_group(activation, g), acc);
    }
    float result = 0.0f;
    for (const float acc : accumulators) result += acc;
    return result;
}

}  // namespace coterie::blocks
