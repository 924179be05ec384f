#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "quant/activation_for_test.h"
#include "quant/data_type.h"
#include "quant/half.h"
#include "quant/random_blocks.h"

/// The canonical dot products against a double-precision sum of decoded weights times the activation they
/// meet.
namespace coterie {
namespace {

std::vector<const DataTypeTraits*> types_with_dot() {
    std::vector<const DataTypeTraits*> types;
    for (const DataTypeTraits& type : all_data_types()) {
        if (type.dot != nullptr) types.push_back(&type);
    }
    return types;
}

/// Where the binary16 scales stand in a block, by the format's layouts. IQ1_M's scale is spread over its last
/// 8 bytes, MXFP4 and NVFP4 have 8-bit scales.
const std::map<DataType, std::vector<std::size_t>>& half_offsets() {
    using enum DataType;
    static const std::map<DataType, std::vector<std::size_t>> offsets = {
        {Q4_0, {0}},    {Q4_1, {0, 2}}, {Q5_0, {0}},    {Q5_1, {0, 2}}, {Q8_0, {0}},    {Q2_K, {80, 82}},
        {Q3_K, {108}},  {Q4_K, {0, 2}}, {Q5_K, {0, 2}}, {Q6_K, {208}},  {IQ2_XXS, {0}}, {IQ2_XS, {0}},
        {IQ3_XXS, {0}}, {IQ1_S, {0}},   {IQ4_NL, {0}},  {IQ3_S, {0}},   {IQ2_S, {0}},   {IQ4_XS, {0}},
        {TQ1_0, {52}},  {TQ2_0, {64}},  {Q1_0, {0}},    {Q2_0, {0}},
    };
    return offsets;
}

void set_half(std::vector<std::byte>& row, std::size_t offset, std::uint16_t half) {
    std::memcpy(row.data() + offset, &half, sizeof half);
}

/// Sets every binary16 scale and minimum of every block of a row.
void set_scales(const DataTypeTraits& type, std::vector<std::byte>& row, std::uint16_t half) {
    const auto block_bytes = static_cast<std::size_t>(type.block_bytes);
    for (std::size_t block = 0; block < row.size(); block += block_bytes) {
        for (const std::size_t offset : half_offsets().at(type.type)) set_half(row, block + offset, half);
    }
}

/// The K-quants subtract their minimum. A negative one makes both terms add up, so that their sum cannot
/// cancel.
void negate_subtracted_minimum(const DataTypeTraits& type, std::vector<std::byte>& row) {
    if (type.type != DataType::Q2_K && type.type != DataType::Q4_K && type.type != DataType::Q5_K) return;
    row[half_offsets().at(type.type)[1] + 1] ^= std::byte{0x80};
}

std::vector<float> decode(const DataTypeTraits& type, const std::vector<std::byte>& row) {
    std::vector<float> values(row.size() / static_cast<std::size_t>(type.block_bytes) *
                              static_cast<std::size_t>(type.block_values));
    type.decode(row.data(), static_cast<std::int64_t>(values.size()), values.data());
    return values;
}

/// Compares a dot product with the exact sum, within the rounding errors that its length allows.
void expect_dot_is_exact_sum(const DataTypeTraits& type, const std::vector<std::byte>& row,
                             const std::vector<float>& x, const ActivationForTest& activation) {
    const std::vector<float> weights = decode(type, row);
    double sum = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double value =
            type.uses_quantised_activation ? activation.dequantised(i) : static_cast<double>(x[i]);
        sum += weights[i] * value;
        magnitude += std::fabs(weights[i] * value);
    }
    // The two terms of a type with minima may each be far larger than their difference: 64 is the most in
    // these tests.
    const double roundings = 8.0 + static_cast<double>(weights.size()) / 32.0;
    const double tolerance = 64.0 * roundings * magnitude * 0x1p-24;
    EXPECT_NEAR(type.dot(row.data(), activation.row()), sum, tolerance)
        << type.name << ", " << weights.size();
}

std::vector<std::byte> random_row(const DataTypeTraits& type, std::int64_t blocks, std::uint64_t seed) {
    std::vector<std::byte> row(static_cast<std::size_t>(blocks * type.block_bytes));
    SplitMix64 random(seed);
    RandomBlocks(type.type, 0.5f).fill(random, blocks, row.data());
    return row;
}

TEST(CanonicalDot, IsTheExactSumUpToRounding) {
    for (const DataTypeTraits* type : types_with_dot()) {
        for (const std::int64_t blocks : {1, 2, 3, 7, 8, 9, 11, 31, 33, 64}) {
            const auto columns = static_cast<std::size_t>(blocks * type->block_values);
            const auto x = random_values_for_test(columns, 5);
            expect_dot_is_exact_sum(*type, random_row(*type, blocks, 6), x, ActivationForTest(x));
        }
    }
}

TEST(CanonicalDot, AnEmptyRowGivesZero) {
    for (const DataTypeTraits* type : types_with_dot()) {
        EXPECT_EQ(type->dot(nullptr, ActivationForTest(std::vector<float>{}).row()), 0.0f) << type->name;
    }
}

TEST(CanonicalDot, ReadsRowsAtOddAddresses) {
    for (const DataTypeTraits* type : types_with_dot()) {
        const std::int64_t blocks = 256 / type->block_values;
        const ActivationForTest activation(random_values_for_test(256, 9));
        const std::vector<std::byte> row = random_row(*type, blocks, 10);
        std::vector<std::byte> moved(row.size() + 1);
        std::memcpy(moved.data() + 1, row.data(), row.size());
        EXPECT_EQ(type->dot(moved.data() + 1, activation.row()), type->dot(row.data(), activation.row()))
            << type->name;
    }
}

TEST(CanonicalDot, KeepsExtremeCodesAndScalesExact) {
    for (const auto& [id, offsets] : half_offsets()) {
        const DataTypeTraits& type = traits(id);
        for (const int pattern : {0x00, 0xff, 0x7f, 0x80, 0x55, 0xaa}) {
            for (const std::uint16_t scale : {0x0001, 0x03ff, 0x3c00, 0x7bff, 0xfbff}) {
                std::vector<std::byte> row(static_cast<std::size_t>(type.block_bytes),
                                           static_cast<std::byte>(pattern));
                set_scales(type, row, scale);
                negate_subtracted_minimum(type, row);
                const std::vector<float> x(static_cast<std::size_t>(type.block_values), -1.0f);
                expect_dot_is_exact_sum(type, row, x, ActivationForTest(x));
            }
        }
    }
}

TEST(CanonicalDot, LargestIntegersOfQ6KStayExact) {
    // Every code -32, every scale -128, every quant 127: the largest sum of the law, just below 2^24.
    std::vector<std::byte> row(210, std::byte{0});
    for (std::size_t i = 192; i < 208; ++i) row[i] = std::byte{0x80};
    set_half(row, 208, 0x3c00);
    const ActivationForTest activation(std::vector<int>(256, 127), std::vector<float>(8, 1.0f));
    EXPECT_EQ(traits(DataType::Q6_K).dot(row.data(), activation.row()), 8.0f * 32 * 128 * 32 * 127);
}

TEST(CanonicalDot, ZeroScalesGiveZero) {
    for (const auto& [id, offsets] : half_offsets()) {
        const DataTypeTraits& type = traits(id);
        std::vector<std::byte> row = random_row(type, 3, 12);
        set_scales(type, row, 0);
        const ActivationForTest activation(
            random_values_for_test(static_cast<std::size_t>(3 * type.block_values), 13));
        EXPECT_EQ(type.dot(row.data(), activation.row()), 0.0f) << type.name;
    }
    for (const DataTypeTraits* type : types_with_dot()) {
        const ActivationForTest zero(std::vector<float>(256));
        EXPECT_EQ(type->dot(random_row(*type, 256 / type->block_values, 14).data(), zero.row()), 0.0f)
            << type->name;
    }
}

TEST(CanonicalDot, ABadScaleOfOneBlockReachesTheResult) {
    for (const auto& [id, offsets] : half_offsets()) {
        const DataTypeTraits& type = traits(id);
        const ActivationForTest activation(
            random_values_for_test(static_cast<std::size_t>(5 * type.block_values), 15));
        for (const std::size_t offset : offsets) {
            std::vector<std::byte> row = random_row(type, 5, 16);
            set_half(row, 3 * static_cast<std::size_t>(type.block_bytes) + offset, 0x7e00);
            EXPECT_TRUE(std::isnan(type.dot(row.data(), activation.row()))) << type.name << " at " << offset;
        }
    }
}

TEST(CanonicalDot, ABadActivationReachesTheResult) {
    for (const DataTypeTraits* type : types_with_dot()) {
        std::vector<float> x = random_values_for_test(512, 17);
        x[300] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<std::byte> row = random_row(*type, 512 / type->block_values, 18);
        EXPECT_TRUE(std::isnan(type->dot(row.data(), ActivationForTest(x).row()))) << type->name;
    }
}

}  // namespace
}  // namespace coterie
