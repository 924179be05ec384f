#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/archive.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

std::size_t files_in(const TemporaryFolder& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(WriterTest, FileAndMemoryHoldTheSame) {
    const TemporaryFolder folder;
    const Header header = testing::header_of_everything();
    write_file(folder.path() / "m.gguf", header, Overwrite::No, testing::write_pattern);
    EXPECT_EQ(testing::read_all(folder.path() / "m.gguf"), testing::with_pattern(header));
    EXPECT_EQ(files_in(folder), 1U);
}

TEST(WriterTest, TakesDataInPieces) {
    Header header;
    header.add_tensor({"a", DataType::F32, {1000}});
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto bytes = write_bytes(header, [&](std::size_t, TensorOutput& output) {
        output.append(std::span<const float>(values).first(1));
        output.append(std::span<const float>(values).subspan(1));
    });
    const Directory directory = read_directory(bytes, "m.gguf");
    EXPECT_EQ(load<float>(&directory.tensors[0].bytes[999 * 4]), 999.0F);
}

TEST(WriterTest, KeepsAnExistingFile) {
    const TemporaryFolder folder;
    const auto path = folder.write("m.gguf", testing::Bytes(10, std::byte{7}));
    const Header header = testing::header_of_everything();
    EXPECT_THAT(message_of([&] { write_file(path, header, Overwrite::No, testing::write_pattern); }),
                HasSubstr(path.string() + ": exists already"));
    EXPECT_EQ(testing::read_all(path), testing::Bytes(10, std::byte{7}));
    write_file(path, header, Overwrite::Yes, testing::write_pattern);
    EXPECT_EQ(Archive::open(path).tensors().size(), 5U);
    EXPECT_EQ(files_in(folder), 1U);
}

TEST(WriterTest, KeepsAFileThatAppearsMeanwhile) {
    const TemporaryFolder folder;
    Header header;
    header.add_tensor({"a", DataType::F32, {1}});
    const auto appear = [&](std::size_t tensor, TensorOutput& output) {
        folder.write("m.gguf", testing::Bytes(10));
        testing::write_pattern(tensor, output);
    };
    EXPECT_THAT(message_of([&] { write_file(folder.path() / "m.gguf", header, Overwrite::No, appear); }),
                HasSubstr("File exists"));
    EXPECT_EQ(testing::read_all(folder.path() / "m.gguf"), testing::Bytes(10));
    EXPECT_EQ(files_in(folder), 1U);
}

TEST(WriterTest, LeavesNothingBehindOnFailure) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "m.gguf";
    const auto stop = [](std::size_t tensor, TensorOutput& output) {
        if (tensor == 1) fail(ErrorCode::Cancelled, "stopped");
        testing::write_pattern(tensor, output);
    };
    EXPECT_EQ(message_of([&] { write_file(path, testing::header_of_everything(), Overwrite::No, stop); }),
              "stopped");
    EXPECT_EQ(files_in(folder), 0U);
    EXPECT_THAT(message_of([&] {
                    write_file(folder.path() / "no" / "m.gguf", Header(), Overwrite::No,
                               testing::write_pattern);
                }),
                HasSubstr("cannot create the file: No such file"));
}

TEST(WriterTest, ChecksTheAmountOfData) {
    Header header;
    header.add_tensor({"a", DataType::F32, {2}});
    const std::vector<std::byte> twelve(12);
    const auto too_much = [&](std::size_t, TensorOutput& output) { output.append(std::span(twelve)); };
    const auto too_little = [&](std::size_t, TensorOutput& output) {
        output.append(std::span(twelve).first(4));
    };
    EXPECT_THROW(write_bytes(header, too_much), Error);
    EXPECT_THROW(write_bytes(header, too_little), Error);
}

TEST(WriterTest, RefusesWhatTheReaderWouldRefuse) {
    Header header;
    header.set("key", 1.0F);
    header.add_tensor({"a", DataType::F32, {2}});
    EXPECT_THAT(message_of([&] { header.set("key", "again"); }), HasSubstr("key 'key'"));
    EXPECT_THAT(message_of([&] { header.set("", true); }), HasSubstr("empty"));
    EXPECT_THAT(message_of([&] { header.add_tensor({"a", DataType::F32, {2}}); }), HasSubstr("tensor 'a'"));
    for (const std::vector<std::int64_t>& dims : std::vector<std::vector<std::int64_t>>{
             {}, {0}, {-256}, {255}, {256, 0}, {256, -1}, {256, 1, 1, 1, 1}, {256, INT64_MAX, 2}}) {
        EXPECT_THAT(message_of([&] {
                        header.add_tensor({"b", DataType::Q4_K, dims});
                    }),
                    HasSubstr("'b'"))
            << dims.size();
    }
    EXPECT_EQ(header.tensors().size(), 1U);
}

}  // namespace
}  // namespace coterie::gguf
