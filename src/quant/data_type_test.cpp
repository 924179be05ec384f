#include "quant/data_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

namespace coterie {
namespace {

/// The format's table: id, name, values and bytes of a block.
struct Row {
    std::uint32_t id;
    std::string_view name;
    std::int64_t values;
    std::int64_t bytes;
};
constexpr Row kFormat[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};

TEST(DataTypes, AreTheFormatsTable) {
    const auto types = all_data_types();
    ASSERT_EQ(types.size(), std::size(kFormat));
    for (std::size_t i = 0; i < types.size(); ++i) {
        EXPECT_EQ(static_cast<std::uint32_t>(types[i].type), kFormat[i].id);
        EXPECT_EQ(types[i].name, kFormat[i].name);
        EXPECT_EQ(types[i].block_values, kFormat[i].values) << kFormat[i].name;
        EXPECT_EQ(types[i].block_bytes, kFormat[i].bytes) << kFormat[i].name;
    }
}

TEST(DataTypes, AllDecodeAndOnlyTheListedHaveNoDot) {
    std::vector<std::string_view> without_dot;
    for (const DataTypeTraits& type : all_data_types()) {
        EXPECT_NE(type.decode, nullptr) << type.name;
        if (type.dot == nullptr) without_dot.push_back(type.name);
        EXPECT_EQ(type.uses_quantised_activation, type.dot != nullptr && type.block_values > 1) << type.name;
    }
    EXPECT_THAT(without_dot, ::testing::ElementsAre("Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64"));
}

TEST(DataTypes, RetiredAndUnknownIdsAreRefused) {
    for (const std::uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 97u, 0xffffffffu}) {
        EXPECT_EQ(find_data_type(id), nullptr) << id;
    }
}

TEST(DataTypes, AreFoundByNameInAnyCase) {
    for (const DataTypeTraits& type : all_data_types()) {
        EXPECT_EQ(find_data_type(type.name), &type);
        EXPECT_EQ(find_data_type(static_cast<std::uint32_t>(type.type)), &type);
        EXPECT_EQ(&traits(type.type), &type);
    }
    EXPECT_EQ(find_data_type("q4_k"), &traits(DataType::Q4_K));
    EXPECT_EQ(find_data_type("mxFp4"), &traits(DataType::MXFP4));
    EXPECT_EQ(find_data_type("Q4_"), nullptr);
    EXPECT_EQ(find_data_type("Q4_K_M"), nullptr);
    EXPECT_EQ(find_data_type(""), nullptr);
}

TEST(DataTypes, RowBytesCountWholeBlocks) {
    EXPECT_EQ(row_bytes(DataType::Q4_K, 512), 288);
    EXPECT_EQ(row_bytes(DataType::MXFP4, 96), 51);
    EXPECT_EQ(row_bytes(DataType::F16, 3), 6);
    EXPECT_EQ(row_bytes(DataType::Q4_K, 0), 0);
    EXPECT_EQ(row_bytes(DataType::Q4_K, 128), std::nullopt);
    EXPECT_EQ(row_bytes(DataType::Q8_0, 33), std::nullopt);
    EXPECT_EQ(row_bytes(DataType::F32, -4), std::nullopt);
    EXPECT_EQ(row_bytes(DataType::F64, std::numeric_limits<std::int64_t>::max()), std::nullopt);
    EXPECT_EQ(row_bytes(DataType::I16, std::numeric_limits<std::int64_t>::max() / 2 + 1), std::nullopt);
    EXPECT_EQ(row_bytes(DataType::I8, std::numeric_limits<std::int64_t>::max()),
              std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace coterie
