#include "gguf/reader.h"

#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RawFile;

TEST(ReaderTest, FindsTheBytesOfEveryTensor) {
    for (const std::uint32_t alignment : {1U, 8U, 32U, 64U, 4096U}) {
        const Header header = testing::header_of_everything(alignment);
        const Bytes bytes = testing::with_pattern(header);
        const Directory directory = read_directory(bytes, "m.gguf");
        EXPECT_EQ(directory.version, 3U);
        EXPECT_EQ(directory.alignment, alignment);
        EXPECT_EQ(bytes.size(), header.file_bytes());
        ASSERT_EQ(directory.tensors.size(), header.tensors().size());
        for (std::size_t i = 0; i < directory.tensors.size(); ++i) {
            const Tensor& tensor = directory.tensors[i];
            EXPECT_EQ(tensor.name, header.tensors()[i].name);
            EXPECT_EQ(tensor.type, header.tensors()[i].type);
            EXPECT_EQ(tensor.bytes.data(), bytes.data() + tensor.file_offset);
            EXPECT_EQ(tensor.file_offset % alignment, 0U);
            ASSERT_EQ(tensor.bytes.size(), header.tensor_bytes(i));
            for (std::size_t at = 0; at < tensor.bytes.size(); ++at) {
                ASSERT_EQ(tensor.bytes[at], testing::pattern(i, at));
            }
        }
    }
}

TEST(ReaderTest, ShapesAndSlices) {
    const Bytes bytes = testing::with_pattern(testing::header_of_everything());
    const Directory directory = read_directory(bytes, "m.gguf");
    const Tensor& norm = directory.tensors[1];
    EXPECT_EQ(norm.rank, 1);
    EXPECT_THAT(norm.dims, ElementsAre(5, 1, 1, 1));
    EXPECT_EQ(norm.slices(), 1);
    const Tensor& experts = directory.tensors[2];
    EXPECT_EQ(shape_text(experts), "32 x 2 x 3");
    EXPECT_EQ(experts.slices(), 3);
    EXPECT_EQ(experts.slice(2).size(), 2U * 34);
    EXPECT_EQ(experts.slice(2).data(), experts.bytes.data() + 2 * 2 * 34);
    EXPECT_EQ(directory.tensors[4].values(), 24);
}

TEST(ReaderTest, KeepsEveryDataType) {
    Header header;
    for (const DataTypeTraits& type : all_data_types()) {
        header.add_tensor({std::string(type.name), type.type, {type.block_values * 2, 3}});
    }
    const Bytes bytes = testing::with_pattern(header);
    const Directory directory = read_directory(bytes, "m.gguf");
    ASSERT_EQ(directory.tensors.size(), all_data_types().size());
    for (std::size_t i = 0; i < directory.tensors.size(); ++i) {
        EXPECT_EQ(directory.tensors[i].type, all_data_types()[i].type);
        EXPECT_EQ(directory.tensors[i].bytes.size(),
                  static_cast<std::size_t>(all_data_types()[i].block_bytes) * 6);
    }
}

TEST(ReaderTest, ReadsVersions2And3) {
    for (const std::uint32_t version : {2U, 3U}) {
        EXPECT_EQ(read_directory(Bytes(RawFile(version)), "m.gguf").version, version);
    }
    Bytes bytes = testing::with_pattern(testing::header_of_everything());
    bytes[4] = std::byte{2};
    EXPECT_EQ(read_directory(bytes, "m.gguf").metadata.integer("u16"), 60000);
}

TEST(ReaderTest, AcceptsAnyOrderAndGaps) {
    Bytes bytes = RawFile(3, 2, 0).tensor("second", {4}, 0, 96).tensor("first", {4}, 0, 0);
    bytes.resize((bytes.size() + 31) / 32 * 32 + 112);
    const Directory directory = read_directory(bytes, "m.gguf");
    EXPECT_EQ(directory.tensors[0].file_offset - directory.tensors[1].file_offset, 96U);
}

TEST(ReaderTest, LastTensorNeedsNoPadding) {
    Header header;
    header.add_tensor({"w", DataType::F32, {3}});
    Bytes bytes = testing::with_pattern(header);
    bytes.resize(bytes.size() - 20);
    EXPECT_EQ(read_directory(bytes, "m.gguf").tensors[0].bytes.size(), 12U);
    bytes.pop_back();
    EXPECT_THAT(testing::refusal(bytes), HasSubstr("tensor 'w': its 12 bytes"));
}

// Wherever a download stops, the refusal is one line that says so.
TEST(ReaderTest, RefusesEveryCutFile) {
    Header header = testing::header_of_everything();
    const Bytes bytes = testing::with_pattern(header);
    const Directory whole = read_directory(bytes, "m.gguf");
    const Tensor& last = whole.tensors.back();
    for (std::size_t size = 0; size < last.file_offset + last.bytes.size(); ++size) {
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const std::string message = testing::refusal(cut);
        ASSERT_THAT(message, HasSubstr("model.gguf: byte ")) << size;
        ASSERT_THAT(message, HasSubstr("download it again")) << size;
        ASSERT_EQ(message.find('\n'), std::string::npos) << message;
    }
}

// A damaged byte gives a refusal or a directory whose tensors lie inside the file, never anything else.
TEST(ReaderTest, SurvivesDamagedBytes) {
    constexpr std::uint32_t kSeed = 20261130;
    std::mt19937 random(kSeed);
    const Bytes bytes = testing::with_pattern(testing::header_of_everything());
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        Bytes damaged = bytes;
        for (int i = 0; i < 1 + round % 3; ++i) damaged[random() % 1200] = static_cast<std::byte>(random());
        try {
            for (const Tensor& tensor : read_directory(damaged, "m.gguf").tensors) {
                ASSERT_LE(tensor.file_offset + tensor.bytes.size(), damaged.size()) << "seed " << kSeed;
            }
        } catch (const Error& error) {
            ++refused;
            ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        }
    }
    EXPECT_GT(refused, 1000);
}

TEST(ReaderTest, BigVocabulariesAreCheap) {
    Header header;
    std::vector<std::string> tokens(250000);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::to_string(i);
    header.set_array("tokenizer.ggml.tokens", tokens);
    const Bytes bytes = testing::with_pattern(header);
    const std::clock_t start = std::clock();  // processor time: a busy machine does not count
    const Directory directory = read_directory(bytes, "m.gguf");
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.25);
    EXPECT_EQ(directory.metadata.strings("tokenizer.ggml.tokens").size(), 250000U);
    EXPECT_EQ(directory.metadata.strings("tokenizer.ggml.tokens").to_vector().back(), "249999");
}

}  // namespace
}  // namespace coterie::gguf
