#include <bit>
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include "quant/data_type.h"

namespace coterie {
namespace {

struct Vector {
    std::string type;
    std::uint32_t id = 0;
    std::size_t values = 0;
    std::vector<std::byte> block;
    std::vector<float> expected;
};

std::vector<std::byte> parse_hexadecimal(const std::string& text) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

std::vector<Vector> read_vectors() {
    std::ifstream file(COTERIE_SOURCE_DIR "/tests/data/dequant_vectors.txt");
    std::vector<Vector> vectors;
    std::string head;
    while (std::getline(file, head)) {
        if (head.starts_with('#')) continue;
        Vector vector;
        std::size_t block_bytes = 0;
        std::istringstream(head) >> vector.type >> vector.id >> vector.values >> block_bytes;
        std::string hexadecimal;
        std::string numbers;
        std::getline(file, hexadecimal);
        std::getline(file, numbers);
        vector.block = parse_hexadecimal(hexadecimal);
        std::istringstream words(numbers);
        for (std::string word; words >> word;) vector.expected.push_back(std::strtof(word.c_str(), nullptr));
        EXPECT_EQ(vector.block.size(), block_bytes) << vector.type;
        EXPECT_EQ(vector.expected.size(), vector.values) << vector.type;
        vectors.push_back(std::move(vector));
    }
    return vectors;
}

/// Every decoded value has at most one rounding (all products are exact), so that no order of operations can
/// differ: the comparison is exact, signs of zeros included.
TEST(Decode, MatchesGoldenVectorsBitForBit) {
    for (const Vector& vector : read_vectors()) {
        const DataTypeTraits* type = find_data_type(vector.id);
        ASSERT_NE(type, nullptr) << vector.type;
        EXPECT_EQ(type->name, vector.type);
        ASSERT_EQ(type->block_bytes, static_cast<std::int64_t>(vector.block.size())) << vector.type;
        ASSERT_EQ(type->block_values, static_cast<std::int64_t>(vector.values)) << vector.type;
        std::vector<float> decoded(vector.values);
        type->decode(vector.block.data(), type->block_values, decoded.data());
        for (std::size_t i = 0; i < decoded.size(); ++i) {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(decoded[i]),
                      std::bit_cast<std::uint32_t>(vector.expected[i]))
                << vector.type << " value " << i << ": " << decoded[i] << " instead of "
                << vector.expected[i];
        }
    }
}

TEST(Decode, EveryWeightTypeHasGoldenVectors) {
    std::vector<std::string> covered;
    for (const Vector& vector : read_vectors()) covered.push_back(vector.type);
    for (const DataTypeTraits& type : all_data_types()) {
        if (!type.uses_quantised_activation) continue;
        EXPECT_THAT(covered, ::testing::Contains(std::string(type.name)));
    }
}

}  // namespace
}  // namespace coterie
