#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/split_mix.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/matmul/matmul.h"

namespace coterie::cpu {
namespace {

constexpr std::uint64_t kSeed = 30112026;

struct Quantised {
    explicit Quantised(std::int64_t columns)
        : groups(static_cast<std::size_t>(activation_groups(columns))),
          quants(groups * 32),
          scales(groups),
          scaled_sums(groups),
          half_sums(groups * 2) {}

    QuantisedActivation view() {
        return {quants.data(), scales.data(), scaled_sums.data(), half_sums.data()};
    }

    std::size_t groups;
    AlignedBuffer<std::int8_t> quants;
    AlignedBuffer<float> scales;
    AlignedBuffer<float> scaled_sums;
    AlignedBuffer<std::int16_t> half_sums;
};

bool same(const AlignedBuffer<float>& a, const AlignedBuffer<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
        if (!both_nan && std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
    }
    return true;
}

template <typename T>
bool same_bytes(const AlignedBuffer<T>& a, const AlignedBuffer<T>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class QuantiseActivationTest : public testing::TestWithParam<InstructionSet> {
  protected:
    static void compare_with_the_law(const std::vector<float>& values) {
        const auto columns = static_cast<std::int64_t>(values.size());
        Quantised expected(columns);
        Quantised result(columns);
        std::memset(result.quants.data(), 0x55, result.quants.size());
        coterie::quantise_activation(values.data(), columns, expected.view());
        quantise_activation_for(GetParam())(values.data(), columns, result.view());
        EXPECT_TRUE(same_bytes(result.quants, expected.quants));
        EXPECT_TRUE(same_bytes(result.half_sums, expected.half_sums));
        EXPECT_TRUE(same(result.scales, expected.scales));
        EXPECT_TRUE(same(result.scaled_sums, expected.scaled_sums));
    }
};

TEST_P(QuantiseActivationTest, GivesTheBitsOfTheLaw) {
    SplitMix64 random(kSeed);
    for (const std::size_t columns : {1, 15, 31, 32, 33, 63, 64, 100, 768, 2048}) {
        for (const float size : {1.0f, 1e-3f, 6e4f, 1e30f, 1e-34f, 1e-36f, 1e-42f}) {
            std::vector<float> values(columns);
            for (float& value : values) value = size * (2.0f * random.next_float() - 1.0f);
            compare_with_the_law(values);
        }
    }
}

TEST_P(QuantiseActivationTest, GivesTheBitsOfTheLawForAnyBits) {
    SplitMix64 random(kSeed);
    for (int round = 0; round < 200; ++round) {
        std::vector<float> values(320);
        for (float& value : values) {
            const auto bits = static_cast<std::uint32_t>(random.next());
            std::memcpy(&value, &bits, sizeof value);
        }
        compare_with_the_law(values);
    }
}

TEST_P(QuantiseActivationTest, TakesSpecialValues) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const float special : {0.0f, -0.0f, kInfinity, -kInfinity, NAN, -NAN, 1e-35f, 0.99e-35f, 3.4e38f}) {
        for (const std::size_t at : {0u, 13u, 31u, 32u, 47u}) {
            std::vector<float> values(48, 0.0f);
            values[at] = special;
            compare_with_the_law(values);
            values.assign(48, 1.0f);
            values[at] = special;
            compare_with_the_law(values);
        }
    }
}

TEST_P(QuantiseActivationTest, RoundsHalvesToEven) {
    // With a maximum of 127 the scale is 1, so the values are the quants before rounding.
    std::vector<float> values(32);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 15.5f;
    values[0] = 127.0f;
    compare_with_the_law(values);
}

std::vector<InstructionSet> sets_of_this_machine() {
    std::vector<InstructionSet> sets;
    for (const InstructionSet set : kInstructionSets) {
        if (machine_has(set)) sets.push_back(set);
    }
    return sets;
}

INSTANTIATE_TEST_SUITE_P(AllSets, QuantiseActivationTest, testing::ValuesIn(sets_of_this_machine()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace coterie::cpu
