#include "gguf/check.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;

/// Where the scales of a block lie: f16 fields by byte offset, as the format defines them.
struct ScaleField {
    DataType type;
    std::size_t offset;
};

const std::vector<ScaleField> kHalfScales = {
    {DataType::F16, 0},     {DataType::Q4_0, 0},   {DataType::Q4_1, 0},    {DataType::Q4_1, 2},
    {DataType::Q5_0, 0},    {DataType::Q5_1, 0},   {DataType::Q5_1, 2},    {DataType::Q8_0, 0},
    {DataType::Q2_K, 80},   {DataType::Q2_K, 82},  {DataType::Q3_K, 108},  {DataType::Q4_K, 0},
    {DataType::Q4_K, 2},    {DataType::Q5_K, 0},   {DataType::Q5_K, 2},    {DataType::Q6_K, 208},
    {DataType::IQ2_XXS, 0}, {DataType::IQ2_XS, 0}, {DataType::IQ3_XXS, 0}, {DataType::IQ1_S, 0},
    {DataType::IQ4_NL, 0},  {DataType::IQ3_S, 0},  {DataType::IQ2_S, 0},   {DataType::IQ4_XS, 0},
    {DataType::TQ1_0, 52},  {DataType::TQ2_0, 64}, {DataType::Q1_0, 0},    {DataType::Q2_0, 0},
};

Bytes zeros(const Header& header) {
    return write_bytes(header, [](std::size_t, TensorOutput& output) {
        const std::vector<std::byte> data(output.left());
        output.append(std::span(data));
    });
}

template <typename T>
void patch(Bytes& bytes, std::uint64_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<BadData> check(const Bytes& bytes) {
    ThreadPool threads(2);
    const Archive archive = Archive::from_bytes(bytes, "m.gguf");
    std::uint64_t done = 0;
    auto found = check_data(archive, threads, [&](std::uint64_t bytes_done) { done = bytes_done; });
    std::uint64_t data = 0;
    for (const Tensor& tensor : archive.tensors()) data += tensor.bytes.size();
    EXPECT_EQ(done, data);
    return found;
}

// Even where every code of the block is zero.
TEST(CheckTest, FindsABadScaleOfEveryType) {
    for (const auto& [type, offset] : kHalfScales) {
        for (const std::uint16_t bad :
             {std::uint16_t{0x7E00}, std::uint16_t{0x7C00}, std::uint16_t{0xFC00}}) {
            Header header;
            header.add_tensor({"w", type, {traits(type).block_values * 3, 5}});
            Bytes bytes = zeros(header);
            EXPECT_TRUE(check(bytes).empty()) << traits(type).name;
            const std::uint64_t data = read_directory(bytes, "m.gguf").data_offset;
            patch(bytes, data + 7 * static_cast<std::uint64_t>(traits(type).block_bytes) + offset, bad);
            EXPECT_THAT(check(bytes), ElementsAre(BadData{"w", std::nullopt, 1, 7}))
                << traits(type).name << " at " << offset;
        }
    }
}

// The scale of IQ1_M is spread over the top four bits of four 16-bit words at byte 48.
TEST(CheckTest, FindsABadScaleOfIQ1_M) {
    Header header;
    header.add_tensor({"w", DataType::IQ1_M, {256, 2}});
    Bytes bytes = zeros(header);
    const std::uint64_t data = read_directory(bytes, "m.gguf").data_offset;
    patch(bytes, data + 56 + 48 + 4, std::uint16_t{0xE000});  // bits 8..11 of the f16 0x7E00
    patch(bytes, data + 56 + 48 + 6, std::uint16_t{0x7000});  // bits 12..15
    EXPECT_THAT(check(bytes), ElementsAre(BadData{"w", std::nullopt, 1, 1}));
}

TEST(CheckTest, FindsBadPlainFloats) {
    Header header;
    header.add_tensor({"f32", DataType::F32, {5}});
    header.add_tensor({"bf16", DataType::BF16, {5}});
    header.add_tensor({"f64", DataType::F64, {5}});
    header.add_tensor({"i32", DataType::I32, {5}});
    Bytes bytes = zeros(header);
    const auto at = [&](std::size_t i) { return read_directory(bytes, "m.gguf").tensors[i].file_offset; };
    patch(bytes, at(0) + 4 * 3, std::numeric_limits<float>::infinity());
    patch(bytes, at(0) + 4 * 4, std::numeric_limits<float>::quiet_NaN());
    patch(bytes, at(1) + 2 * 2, std::uint16_t{0x7F80});
    patch(bytes, at(2) + 8 * 1, std::numeric_limits<double>::quiet_NaN());
    patch(bytes, at(3), 0x7FC00000);
    EXPECT_THAT(check(bytes),
                ElementsAre(BadData{"f32", std::nullopt, 2, 3}, BadData{"bf16", std::nullopt, 1, 2},
                            BadData{"f64", std::nullopt, 1, 1}));
}

TEST(CheckTest, NamesTheExpert) {
    Header header;
    header.add_tensor({"blk.0.ffn_norm.weight", DataType::F32, {8}});
    header.add_tensor({"blk.0.ffn_down_exps.weight", DataType::Q8_0, {64, 4, 8}});
    Bytes bytes = zeros(header);
    const std::uint64_t data = read_directory(bytes, "m.gguf").tensors[1].file_offset;
    const auto break_block = [&](std::uint64_t block) {
        patch(bytes, data + block * 34, std::uint16_t{0x7E00});
    };
    for (const std::uint64_t block : {5 * 8 + 3, 5 * 8 + 7, 7 * 8}) break_block(block);
    const auto found = check(bytes);
    EXPECT_THAT(found, ElementsAre(BadData{"blk.0.ffn_down_exps.weight", 5, 2, 43},
                                   BadData{"blk.0.ffn_down_exps.weight", 7, 1, 56}));
    EXPECT_EQ(bad_data_text(found[0]),
              "blk.0.ffn_down_exps.weight, expert 5: 2 blocks hold NaN or infinity, the first is block 43");
    EXPECT_EQ(bad_data_text(found[1]),
              "blk.0.ffn_down_exps.weight, expert 7: 1 block holds NaN or infinity, the first is block 56");
}

// Large enough for several pieces of work and several buffers of decoded values.
TEST(CheckTest, CountsOverPieces) {
    Header header;
    header.add_tensor({"w", DataType::Q8_0, {32, 40000}});
    Bytes bytes = zeros(header);
    const std::uint64_t data = read_directory(bytes, "m.gguf").data_offset;
    for (std::uint64_t block = 11; block < 40000; block += 1000)
        patch(bytes, data + block * 34, std::uint16_t{0x7C00});
    EXPECT_THAT(check(bytes), ElementsAre(BadData{"w", std::nullopt, 40, 11}));
}

TEST(CheckTest, EndsWhenThereIsNothingToSave) {
    Header header;
    header.add_tensor({"w", DataType::F32, {1, 1, 20000}});
    const auto bytes = write_bytes(header, [](std::size_t, TensorOutput& output) {
        const std::vector<float> data(20000, std::numeric_limits<float>::infinity());
        output.append(std::span<const float>(data));
    });
    EXPECT_EQ(check(bytes).size(), 10000U);
}

}  // namespace
}  // namespace coterie::gguf
