#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "quant/activation_for_test.h"
#include "quant/data_type.h"
#include "quant/fp8.h"
#include "quant/half.h"
#include "quant/random_blocks.h"

/// The order of operations of docs/canonical-arithmetic.md, written out a second time from the text and
/// compared bit for bit, on sums in which another order gives another result.
namespace coterie {
namespace {

/// A row as the law's formulas see it.
struct Row {
    const std::byte* bytes;
    ActivationRow x;
    int byte(std::int64_t at) const { return static_cast<int>(bytes[at]); }
    int signed_byte(std::int64_t at) const { return static_cast<std::int8_t>(bytes[at]); }
    float half(std::int64_t at) const {
        return f16_to_f32(static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8));
    }
    int quant(std::int64_t g, std::int64_t i) const { return x.quants[32 * g + i]; }
};

using GroupUpdate = std::function<float(const Row&, std::int64_t g, float acc)>;

float dot_by_the_law(const Row& row, const GroupUpdate& update) {
    const std::int64_t groups = row.x.columns / 32;
    float result = 0.0f;
    for (std::int64_t accumulator = 0; accumulator < 4; ++accumulator) {
        float acc = 0.0f;
        for (std::int64_t g = accumulator; g < groups; g += 4) acc = update(row, g, acc);
        result += acc;
    }
    return result;
}

float update_q8_0(const Row& row, std::int64_t g, float acc) {
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += row.signed_byte(34 * g + 2 + i) * row.quant(g, i);
    return std::fma(static_cast<float>(sum), row.half(34 * g) * row.x.scales[g], acc);
}

float update_q4_1(const Row& row, std::int64_t g, float acc) {
    int sum = 0;
    for (int i = 0; i < 32; ++i) {
        const int byte = row.byte(20 * g + 4 + i % 16);
        sum += (i < 16 ? byte % 16 : byte / 16) * row.quant(g, i);
    }
    acc = std::fma(static_cast<float>(sum), row.half(20 * g) * row.x.scales[g], acc);
    return std::fma(row.half(20 * g + 2), row.x.scaled_sums[g], acc);
}

float update_q4_k(const Row& row, std::int64_t g, float acc) {
    const std::int64_t block = 144 * (g / 8);
    const std::int64_t k = g % 8;
    const auto scale_byte = [&](std::int64_t i) { return row.byte(block + 4 + i); };
    const int sc = k < 4 ? scale_byte(k) % 64 : scale_byte(k + 4) % 16 + scale_byte(k - 4) / 64 * 16;
    const int mn = k < 4 ? scale_byte(k + 4) % 64 : scale_byte(k + 4) / 16 + scale_byte(k) / 64 * 16;
    int sum = 0;
    for (int i = 0; i < 32; ++i) {
        const int byte = row.byte(block + 16 + 32 * (k / 2) + i);
        sum += (k % 2 == 0 ? byte % 16 : byte / 16) * row.quant(g, i);
    }
    const float ds = row.half(block) * static_cast<float>(sc);
    const float ms = -(row.half(block + 2) * static_cast<float>(mn));
    return std::fma(ms, row.x.scaled_sums[g], std::fma(static_cast<float>(sum), ds * row.x.scales[g], acc));
}

float update_q2_k(const Row& row, std::int64_t g, float acc) {
    const std::int64_t block = 84 * (g / 8);
    int sum = 0;
    int minima = 0;
    for (int i = 0; i < 32; ++i) {
        const int scale = row.byte(block + 2 * (g % 8) + i / 16);
        const int code = row.byte(block + 16 + 32 * (g % 8 / 4) + i) >> (2 * (g % 4)) & 3;
        sum += scale % 16 * code * row.quant(g, i);
        minima += scale / 16 * row.quant(g, i);
    }
    acc = std::fma(static_cast<float>(sum), row.half(block + 80) * row.x.scales[g], acc);
    return std::fma(static_cast<float>(minima), -row.half(block + 82) * row.x.scales[g], acc);
}

float update_q6_k(const Row& row, std::int64_t g, float acc) {
    const std::int64_t block = 210 * (g / 8);
    const std::int64_t part = g % 4;
    int sum = 0;
    for (int i = 0; i < 32; ++i) {
        const int low = row.byte(block + 64 * (g % 8 / 4) + 32 * (part % 2) + i);
        const int high = row.byte(block + 128 + 32 * (g % 8 / 4) + i) >> (2 * part) & 3;
        const int code = (part < 2 ? low % 16 : low / 16) + 16 * high - 32;
        sum += row.signed_byte(block + 192 + 2 * (g % 8) + i / 16) * code * row.quant(g, i);
    }
    return std::fma(static_cast<float>(sum), row.half(block + 208) * row.x.scales[g], acc);
}

float update_nvfp4(const Row& row, std::int64_t g, float acc) {
    constexpr int kDoubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const std::int64_t block = 36 * (g / 2);
    for (int half = 0; half < 2; ++half) {
        const std::int64_t part = 2 * (g % 2) + half;
        int sum = 0;
        for (int i = 0; i < 16; ++i) {
            const int byte = row.byte(block + 4 + 8 * part + i % 8);
            sum += kDoubled[i < 8 ? byte % 16 : byte / 16] * row.quant(g, 16 * half + i);
        }
        const float ds = half_of_ue4m3(static_cast<std::uint8_t>(row.byte(block + part)));
        acc = std::fma(static_cast<float>(sum), ds * row.x.scales[g], acc);
    }
    return acc;
}

void expect_law(DataType id, const GroupUpdate& update) {
    const DataTypeTraits& type = traits(id);
    const RandomBlocks blocks_of_type(id, 1.0f);
    SplitMix64 random(21);
    for (std::int64_t blocks = 1; blocks <= 40; ++blocks) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * type.block_bytes));
        blocks_of_type.fill(random, blocks, bytes.data());
        const auto columns = static_cast<std::size_t>(blocks * type.block_values);
        const ActivationForTest activation(random_values_for_test(columns, random.next()));
        const float expected = dot_by_the_law({bytes.data(), activation.row()}, update);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(type.dot(bytes.data(), activation.row())),
                  std::bit_cast<std::uint32_t>(expected))
            << type.name << ", " << blocks << " blocks";
    }
}

TEST(Law, PlainGroups) { expect_law(DataType::Q8_0, update_q8_0); }
TEST(Law, GroupsWithStoredMinimum) { expect_law(DataType::Q4_1, update_q4_1); }
TEST(Law, GroupsWithScaledMinimum) { expect_law(DataType::Q4_K, update_q4_k); }
TEST(Law, GroupsWithTwoMinima) { expect_law(DataType::Q2_K, update_q2_k); }
TEST(Law, GroupsWithTwoIntegerScales) { expect_law(DataType::Q6_K, update_q6_k); }
TEST(Law, GroupsWithTwoUpdates) { expect_law(DataType::NVFP4, update_nvfp4); }

/// By the law 2^24 + 1 loses the 1 in the first accumulator and 1 - 2^24 keeps it in the second; one running
/// sum, contiguous segments and lanes of every eighth group would all give 2.
TEST(Law, EveryFourthGroupMeetsInOneAccumulator) {
    std::vector<std::byte> row(16 * 34);
    for (std::size_t g = 0; g < 16; ++g) {
        row[34 * g + 1] = std::byte{0x3c};  // d = 1
        row[34 * g + 2] = std::byte{1};
    }
    std::vector<int> quants(16 * 32);
    for (std::size_t g = 0; g < 16; ++g) quants[32 * g] = 1;
    quants[32 * 1] = -1;
    std::vector<float> scales(16);
    scales[0] = 0x1p24f;
    scales[1] = 0x1p24f;
    scales[4] = 1.0f;
    scales[5] = 1.0f;
    const ActivationForTest activation(quants, scales);
    EXPECT_EQ(traits(DataType::Q8_0).dot(row.data(), activation.row()), 1.0f);
}

/// Lanes 0, 8, 16 and 24 of one group: 2^24 + 1 loses the 1, -2^24 + 1 keeps it, then they meet.
TEST(Law, LanesFoldByHalves) {
    std::vector<float> weights(32);
    weights[0] = 0x1p24f;
    weights[16] = 1.0f;
    weights[8] = -0x1p24f;
    weights[24] = 1.0f;
    const ActivationForTest activation(std::vector<float>(32, 1.0f));
    const auto* row = reinterpret_cast<const std::byte*>(weights.data());
    EXPECT_EQ(traits(DataType::F32).dot(row, activation.row()), 1.0f);
}

float lanes_by_the_law(const std::vector<float>& weights, const std::vector<float>& x) {
    float lanes[32] = {};
    for (std::size_t i = 0; i < weights.size(); ++i)
        lanes[i % 32] = std::fma(weights[i], x[i], lanes[i % 32]);
    for (int l = 0; l < 16; ++l) lanes[l] += lanes[l + 16];
    for (int l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
    for (int l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
    for (int l = 0; l < 2; ++l) lanes[l] += lanes[l + 2];
    return lanes[0] + lanes[1];
}

TEST(Law, FloatingPointRowsUseThirtyTwoLanes) {
    for (const DataType id : {DataType::F32, DataType::F16, DataType::BF16}) {
        const DataTypeTraits& type = traits(id);
        for (const std::size_t columns : {1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 100u, 1000u, 4096u}) {
            std::vector<std::byte> row(columns * static_cast<std::size_t>(type.block_bytes));
            SplitMix64 random(columns);
            RandomBlocks(id, 1.0f).fill(random, static_cast<std::int64_t>(columns), row.data());
            std::vector<float> weights(columns);
            type.decode(row.data(), static_cast<std::int64_t>(columns), weights.data());
            const auto x = random_values_for_test(columns, 23);
            EXPECT_EQ(type.dot(row.data(), ActivationForTest(x).row()), lanes_by_the_law(weights, x))
                << type.name << ", " << columns;
        }
    }
}

}  // namespace
}  // namespace coterie
