#include "gguf/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/shard_name.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::shard_header;
using testing::TemporaryFolder;
using testing::with_pattern;

std::string shard_file(int number, int count) { return fmt::format("x-{:05}-of-{:05}.gguf", number, count); }

/// A set of three files, x-00001-of-00003.gguf to x-00003-of-00003.gguf.
class SplitSet : public ::testing::Test {
  protected:
    SplitSet() {
        for (std::uint16_t i = 0; i < 3; ++i) write(i, shard_header(i, 3, 3));
    }
    void write(std::uint16_t number, const Header& header) {
        folder_.write(shard_file(number + 1, 3), with_pattern(header));
    }
    std::filesystem::path path(int number) const { return folder_.path() / shard_file(number, 3); }
    std::string refusal(int number = 1) const {
        return message_of([&] { Archive::open(path(number)); });
    }

    TemporaryFolder folder_;
};

TEST_F(SplitSet, KeepsItsBytesAtTheirAddressesWhenTakenIntoMemory) {
    for (const Reading how : {Reading::Cached, Reading::Direct}) {
        const Archive archive = Archive::open(path(1));
        std::vector<std::vector<std::byte>> before;
        std::vector<const std::byte*> addresses;
        for (const File& file : archive.files()) {
            before.emplace_back(file.bytes().begin(), file.bytes().end());
            addresses.push_back(file.bytes().data());
        }
        std::uint64_t last = 0;
        archive.take_into_memory(how, [&](std::uint64_t done) { last = done; });
        EXPECT_EQ(last, archive.total_bytes());
        for (std::size_t i = 0; i < before.size(); ++i) {
            const auto bytes = archive.files()[i].bytes();
            EXPECT_EQ(bytes.data(), addresses[i]);
            EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), before[i].begin(), before[i].end()));
        }
        write(0, shard_header(0, 3, 3));  // the file may change now
        EXPECT_TRUE(std::equal(before[0].begin(), before[0].end(), archive.files()[0].bytes().begin()));
    }
}

TEST_F(SplitSet, RefusesAFileThatChangedBeforeItWasTakenIntoMemory) {
    const Archive archive = Archive::open(path(1));
    std::filesystem::resize_file(path(2), std::filesystem::file_size(path(2)) + 1);
    EXPECT_THAT(message_of([&] { archive.take_into_memory(Reading::Cached, [](std::uint64_t) {}); }),
                AllOf(HasSubstr("00002-of-00003"), HasSubstr("has changed")));
}

TEST_F(SplitSet, EndsEarlyWhereProgressThrows) {
    const Archive archive = Archive::open(path(1));
    EXPECT_THROW(
        archive.take_into_memory(Reading::Direct, [](std::uint64_t) { throw std::runtime_error("enough"); }),
        std::runtime_error);
}

TEST_F(SplitSet, OpensFromAnyOfItsFiles) {
    for (int number = 1; number <= 3; ++number) {
        const Archive archive = Archive::open(path(number));
        EXPECT_EQ(archive.name(), path(number).string());
        EXPECT_EQ(archive.files().size(), 3U);
        EXPECT_EQ(archive.metadata().string("general.architecture"), "test");
        ASSERT_EQ(archive.tensors().size(), 3U);
        for (std::uint32_t i = 0; i < 3; ++i) {
            EXPECT_EQ(archive.tensors()[i].name, fmt::format("blk.{}.weight", i));
            EXPECT_EQ(archive.tensors()[i].shard, i);
        }
        EXPECT_EQ(archive.find_tensor("blk.2.weight"), &archive.tensors()[2]);
        EXPECT_EQ(archive.find_tensor("blk.3.weight"), nullptr);
        EXPECT_EQ(archive.total_bytes(), std::filesystem::file_size(path(1)) +
                                             std::filesystem::file_size(path(2)) +
                                             std::filesystem::file_size(path(3)));
    }
}

TEST_F(SplitSet, FindsItsFilesFromAnotherFolder) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
    EXPECT_EQ(Archive::open(shard_file(2, 3)).files().size(), 3U);
    std::filesystem::current_path(before);
}

TEST_F(SplitSet, AcceptsAFirstFileWithoutTensors) {
    Header header;
    header.set("general.architecture", "test");
    header.set("split.no", std::uint16_t{0});
    header.set("split.count", std::uint16_t{3});
    header.set("split.tensors.count", std::int32_t{2});
    write(0, header);
    write(1, shard_header(1, 3, 2));
    write(2, shard_header(2, 3, 2));
    EXPECT_EQ(Archive::open(path(1)).tensors().size(), 2U);
}

TEST_F(SplitSet, NamesAllMissingFiles) {
    std::filesystem::remove(path(1));
    std::filesystem::remove(path(3));
    EXPECT_THAT(refusal(2), AllOf(HasSubstr("2 of the 3 files"), HasSubstr(shard_file(1, 3)),
                                  HasSubstr(", " + shard_file(3, 3))));
}

TEST_F(SplitSet, ListsAtMostFiftyMissingFiles) {
    const auto only = folder_.write(shard_file(1, 99999), with_pattern(shard_header(0, 3, 3)));
    EXPECT_THAT(message_of([&] { Archive::open(only); }),
                AllOf(HasSubstr("99998 of the 99999 files"), HasSubstr("and 99948 more"),
                      HasSubstr(shard_file(51, 99999)), Not(HasSubstr(shard_file(52, 99999)))));
}

TEST_F(SplitSet, RefusesFilesInEachOthersPlace) {
    std::filesystem::rename(path(2), path(1));
    std::filesystem::copy(path(3), path(2));
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr(path(1).string()), HasSubstr("file 1 of 3"), HasSubstr("file 2 of 3")));
}

TEST_F(SplitSet, RefusesAFileOfAnotherSet) {
    write(1, shard_header(1, 5, 3));
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path(2).string()), HasSubstr("file 2 of 5")));
    write(1, shard_header(1, 3, 9));
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr(path(2).string()), HasSubstr("'split.tensors.count' is 9, but 3")));
    Header other = shard_header(1, 3, 3);
    other.set("general.architecture", "other");
    write(1, other);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path(2).string()), HasSubstr("'other', but 'test'")));
    write(1, Header());
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path(2).string()), HasSubstr("no keys 'split.no'")));
}

TEST_F(SplitSet, RefusesAnotherNumberOfTensors) {
    Header more = shard_header(2, 3, 3);
    more.add_tensor({"more.weight", DataType::F32, {4}});
    write(2, more);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("promises 3 tensors"), HasSubstr("hold 4 (1 + 1 + 2)")));
}

TEST_F(SplitSet, RefusesATensorInTwoFiles) {
    Header twice = shard_header(1, 3, 3);
    twice.add_tensor({"blk.0.weight", DataType::F32, {4}});
    write(1, twice);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(path(2).string() + ": byte "), HasSubstr("tensor 'blk.0.weight'"),
                                 HasSubstr(path(1).string())));
}

TEST_F(SplitSet, RefusesARenamedFile) {
    std::filesystem::rename(path(2), folder_.path() / "model.gguf");
    EXPECT_THAT(message_of([&] { Archive::open(folder_.path() / "model.gguf"); }),
                AllOf(HasSubstr("file 2 of a model split into 3"), HasSubstr("-00002-of-00003.gguf")));
    const auto bytes = with_pattern(shard_header(1, 3, 3));
    EXPECT_THAT(message_of([&] { Archive::from_bytes(bytes, "embedded"); }),
                HasSubstr("embedded: is file 2"));
}

TEST(ArchiveTest, SurvivesAnyShardNumber) {
    Header header;
    header.set("split.no", std::int64_t{INT64_MAX});
    header.set("split.count", std::int64_t{INT64_MAX});
    const auto bytes = with_pattern(header);
    EXPECT_THAT(message_of([&] { Archive::from_bytes(bytes, "embedded"); }),
                HasSubstr("embedded: is file 9223372036854775808 of a model split into 9223372036854775807"));
}

TEST_F(SplitSet, RefusesACutFileByItsName) {
    std::filesystem::resize_file(path(3), std::filesystem::file_size(path(3)) - 20);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr(path(3).string() + ": byte "), HasSubstr("tensor 'blk.2.weight'")));
}

TEST_F(SplitSet, PrefaultCountsOverAllFiles) {
    const Archive archive = Archive::open(path(1));
    std::vector<std::uint64_t> seen;
    archive.prefault([&](std::uint64_t done) { seen.push_back(done); });
    EXPECT_EQ(seen.size(), 3U);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.back(), archive.total_bytes());
}

TEST(ArchiveTest, OrdinaryNamesThatLookLikeShards) {
    const TemporaryFolder folder;
    for (const char* name : {"best-of-breed.gguf", "x-00001-of-00001.gguf", "x-00000-of-00002.gguf",
                             "x-1-of-2.gguf", "x-00003-of-00002.gguf", "-00001-of-00002.GGUF"}) {
        const auto path = folder.write(name, with_pattern(shard_header(0, 1, 1)));
        EXPECT_FALSE(parse_shard_name(path)) << name;
        EXPECT_EQ(Archive::open(path).tensors().size(), 1U) << name;
    }
}

TEST(ArchiveTest, ShardNames) {
    const auto name = parse_shard_name("/models/a-00007-of-00012-00002-of-00345.gguf");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->prefix, "a-00007-of-00012");
    EXPECT_EQ(name->number, 2);
    EXPECT_EQ(name->count, 345);
    EXPECT_EQ(name->path_of(17), "/models/a-00007-of-00012-00017-of-00345.gguf");
}

TEST(ArchiveTest, ViewsSurviveAMove) {
    const auto bytes = with_pattern(testing::header_of_everything());
    Archive archive = Archive::from_bytes(bytes, "the embedded model");
    const Archive moved = std::move(archive);
    EXPECT_EQ(moved.name(), "the embedded model");
    EXPECT_EQ(moved.metadata().integer("u8"), 200);
    EXPECT_EQ(moved.tensor("output_norm.weight").bytes[1], testing::pattern(1, 1));
    EXPECT_THAT(message_of([&] { moved.tensor("output.weight"); }),
                HasSubstr("the embedded model: tensor 'output.weight' is missing"));
}

TEST(FileTest, SaysWhyAPathCannotBeOpened) {
    const TemporaryFolder folder;
    const auto missing = folder.path() / "none.gguf";
    EXPECT_THAT(message_of([&] { Archive::open(missing); }), HasSubstr(missing.string() + ": no such file"));
    EXPECT_THAT(message_of([&] { Archive::open(folder.path()); }), HasSubstr("is a directory"));
    EXPECT_THAT(message_of([&] { Archive::open("/dev/null"); }), HasSubstr("is no regular file"));
    const auto empty = folder.write("empty.gguf", {});
    EXPECT_THAT(message_of([&] { Archive::open(empty); }),
                HasSubstr("empty.gguf: byte 0: the file is empty"));
}

TEST(FileTest, PrefaultReportsProgressAndCanBeEnded) {
    const std::vector<std::byte> bytes((std::size_t{70} << 20) + 123);
    const File file = File::from_bytes(bytes, "memory");
    std::vector<std::uint64_t> seen;
    file.prefault([&](std::uint64_t done) { seen.push_back(done); });
    EXPECT_THAT(seen, ::testing::ElementsAre(32U << 20, 64U << 20, bytes.size()));
    EXPECT_THROW(file.prefault([](std::uint64_t) { fail(ErrorCode::Cancelled, "stopped"); }), Error);
}

}  // namespace
}  // namespace coterie::gguf
