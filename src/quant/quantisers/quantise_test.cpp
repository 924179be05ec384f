#include "quant/quantise.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>
#include <vector>

#include "base/split_mix.h"

namespace coterie {
namespace {

constexpr std::int64_t kColumns = 4096;

std::vector<float> normal_values(float deviation, std::uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<float> values(kColumns);
    for (float& value : values) {
        const double radius = std::sqrt(-2.0 * std::log(1.0 - random.next_float()));
        value =
            static_cast<float>(deviation * radius * std::cos(2.0 * std::numbers::pi * random.next_float()));
    }
    return values;
}

std::vector<float> round_trip(DataType type, const std::vector<float>& values) {
    const auto columns = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> row(static_cast<std::size_t>(*row_bytes(type, columns)));
    std::vector<float> decoded(values.size());
    quantise_row(type, values.data(), columns, row.data());
    traits(type).decode(row.data(), columns, decoded.data());
    return decoded;
}

/// Root mean square of the error over that of the values.
double relative_error(const std::vector<float>& values, const std::vector<float>& decoded) {
    double errors = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        errors += std::pow(static_cast<double>(values[i]) - decoded[i], 2);
        squares += std::pow(static_cast<double>(values[i]), 2);
    }
    return std::sqrt(errors / squares);
}

struct Bound {
    DataType type;
    double error;  ///< for normally distributed values
};
constexpr Bound kBounds[] = {
    {DataType::F32, 0.0},    {DataType::F16, 3e-4},    {DataType::BF16, 2.4e-3}, {DataType::Q4_0, 0.10},
    {DataType::Q4_1, 0.09},  {DataType::Q5_0, 0.05},   {DataType::Q5_1, 0.045},  {DataType::Q8_0, 0.006},
    {DataType::Q2_K, 0.32},  {DataType::Q3_K, 0.19},   {DataType::Q4_K, 0.09},   {DataType::Q5_K, 0.045},
    {DataType::Q6_K, 0.022}, {DataType::IQ4_NL, 0.09}, {DataType::IQ4_XS, 0.09}, {DataType::MXFP4, 0.14},
};

TEST(Quantise, RoundTripStaysWithinTheTypesError) {
    for (const Bound& bound : kBounds) {
        for (const float deviation : {0.02f, 3.0f}) {
            const auto values = normal_values(deviation, 4);
            EXPECT_LE(relative_error(values, round_trip(bound.type, values)), bound.error)
                << traits(bound.type).name << ", deviation " << deviation;
        }
    }
}

TEST(Quantise, CoversExactlyTheListedTypes) {
    for (const DataTypeTraits& type : all_data_types()) {
        bool listed = false;
        for (const Bound& bound : kBounds) listed = listed || bound.type == type.type;
        EXPECT_EQ(can_quantise(type.type), listed) << type.name;
    }
}

TEST(Quantise, ZerosStayZero) {
    for (const Bound& bound : kBounds) {
        for (const float value : round_trip(bound.type, std::vector<float>(512))) {
            ASSERT_EQ(value, 0.0f) << traits(bound.type).name;
        }
    }
}

TEST(Quantise, ConstantAndOneSidedBlocksKeepTheirSize) {
    for (const Bound& bound : kBounds) {
        for (const float value : {0.75f, -0.75f}) {
            const std::vector<float> constant(256, value);
            EXPECT_LE(relative_error(constant, round_trip(bound.type, constant)), 0.35)
                << traits(bound.type).name << " of " << value;
        }
        auto positive = normal_values(1.0f, 5);
        for (float& value : positive) value = std::fabs(value);
        EXPECT_LE(relative_error(positive, round_trip(bound.type, positive)), 1.1 * bound.error)
            << traits(bound.type).name;
    }
}

}  // namespace
}  // namespace coterie
