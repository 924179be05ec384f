#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kv_cache/byte_stream.h"
#include "kv_cache/sequence_state.h"

namespace coterie {
namespace {

using Bytes = std::vector<std::byte>;
using cpu::CacheType;
using testing::HasSubstr;

constexpr std::uint64_t kFingerprint = 0x1234;

class SavedState : public testing::Test {
  protected:
    SavedState() : pool_(layout_.page_bytes(), 4 * layout_.page_bytes()), state_(layout_, pool_) {
        grow(3);
        state_.snapshot();
        grow(2);
        MemorySink sink;
        state_.save(sink, kFingerprint);
        saved_ = sink.bytes();
    }

    void grow(std::int64_t n) {
        ASSERT_TRUE(state_.prepare(n));
        for (std::int64_t p = state_.length(); p < state_.length() + n; ++p) {
            std::memset(state_.key_row(0, p), static_cast<int>(p + 1), 4);
            std::memset(state_.value_row(0, p), static_cast<int>(p + 101), 4);
        }
        state_.advance(n);
        state_.recurrent(1)[0] = static_cast<float>(state_.length());
    }

    std::optional<SequenceState> restore(const Bytes& bytes) {
        MemorySource source(bytes, "chat.state");
        return SequenceState::restore(layout_, pool_, source, kFingerprint);
    }

    /// The one line with which `bytes` are refused; every page must be back in the pool.
    std::string refusal(const Bytes& bytes) {
        const std::uint64_t free = pool_.free_pages();
        std::string message = "accepted";
        try {
            restore(bytes);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidFile);
            message = error.what();
            EXPECT_THAT(message, testing::StartsWith("chat.state: "));
            EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
        }
        EXPECT_EQ(pool_.free_pages(), free);
        return message;
    }

    /// Overwrites 8 bytes of the header.
    Bytes with_field(std::size_t offset, std::uint64_t value) {
        Bytes bytes = saved_;
        std::memcpy(bytes.data() + offset, &value, sizeof(value));
        return bytes;
    }

    StateLayout layout_{{KeyValueLayer{1, 2, 2, CacheType::F16, CacheType::F16}, RecurrentLayer{2}}};
    BlockPool pool_;
    SequenceState state_;
    Bytes saved_;
};

TEST_F(SavedState, ComesBackWithItsSnapshots) {
    auto restored = restore(saved_);
    ASSERT_TRUE(restored);
    EXPECT_EQ(restored->length(), 5);
    EXPECT_EQ(restored->recurrent(1)[0], 5.0f);
    EXPECT_EQ(restored->key_pages(0)[0][4 * 4], std::byte{5});
    EXPECT_EQ(restored->value_pages(0)[0][4 * 4], std::byte{105});
    EXPECT_EQ(restored->truncate(4), 3);
    EXPECT_EQ(restored->recurrent(1)[0], 3.0f);
    restored->check_integrity();
}

TEST_F(SavedState, HoldsOnlyTheRowsOfItsTokens) {
    const std::uint64_t frame = 48 + 8;
    EXPECT_EQ(saved_.size(), frame + 5 * layout_.token_bytes() + 2 * layout_.fixed_bytes() + 8);
    EXPECT_EQ(state_.truncate(3), 3);
    MemorySink sink;
    state_.save(sink, kFingerprint);
    EXPECT_THAT(sink.bytes(), testing::Not(testing::Contains(std::byte{104})))
        << "a row beyond the length is in the file";
}

TEST_F(SavedState, EveryFlippedByteIsRefused) {
    for (std::size_t i = 0; i < saved_.size(); ++i) {
        for (const int flip : {0x01, 0x80, 0xFF}) {
            Bytes damaged = saved_;
            damaged[i] ^= std::byte(flip);
            EXPECT_NE(refusal(damaged), "accepted") << "byte " << i;
        }
    }
}

TEST_F(SavedState, EveryCutAndEveryExtensionIsRefused) {
    for (std::size_t size = 0; size < saved_.size(); ++size) {
        const Bytes cut(saved_.begin(), saved_.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_THAT(refusal(cut), HasSubstr(size < 48 ? "is not a saved state" : "is cut")) << size;
    }
    Bytes extended = saved_;
    extended.push_back(std::byte{0});
    EXPECT_NE(refusal(extended), "accepted");
}

TEST_F(SavedState, SaysWhatIsWrong) {
    EXPECT_THAT(refusal(with_field(0, 5)), HasSubstr("is not a saved state"));
    EXPECT_THAT(refusal(with_field(8, 2)), HasSubstr("format version 2, this program reads version 1"));
    EXPECT_THAT(refusal(with_field(16, 0xAB)),
                HasSubstr("another model or configuration (fingerprint 00000000000000ab"));
    EXPECT_THAT(refusal(with_field(24, 0)), HasSubstr("other cache types"));
    EXPECT_THAT(refusal(with_field(32, 6)), HasSubstr("contradict"));
    EXPECT_THAT(refusal(with_field(32, UINT64_MAX)), HasSubstr("contradict"));
    EXPECT_THAT(refusal(with_field(32, UINT64_MAX / layout_.token_bytes() + 2)), HasSubstr("contradict"));
    EXPECT_THAT(refusal(with_field(40, saved_.size() - 1)), HasSubstr("contradict"));
    Bytes damaged = saved_;
    damaged[50] ^= std::byte{1};
    EXPECT_THAT(refusal(damaged), HasSubstr("its checksum differs"));
}

TEST_F(SavedState, AHeaderThatPromisesTooMuchAllocatesNothing) {
    const std::uint64_t length = std::uint64_t{1} << 40;
    Bytes bytes = with_field(32, length);
    const std::uint64_t total = saved_.size() + (length - 5) * layout_.token_bytes();
    std::memcpy(bytes.data() + 40, &total, sizeof(total));
    EXPECT_THAT(refusal(bytes), HasSubstr("is cut"));
}

TEST_F(SavedState, AFullPoolIsAValue) {
    grow(59 + 128);
    EXPECT_EQ(pool_.free_pages(), 1u);
    SequenceState other(layout_, pool_);
    ASSERT_TRUE(other.prepare(1));
    EXPECT_EQ(restore(saved_), std::nullopt);
}

TEST_F(SavedState, AShorterSnapshotListKeepsTheNewest) {
    state_.snapshot();
    MemorySink sink;
    state_.save(sink, kFingerprint);
    MemorySource source(sink.bytes());
    const auto restored = SequenceState::restore(layout_, pool_, source, kFingerprint, {.snapshot_limit = 1});
    ASSERT_TRUE(restored);
    ASSERT_EQ(restored->snapshots().entries().size(), 1u);
    EXPECT_EQ(restored->snapshots().entries()[0]->position, 5);
}

class SavedFile : public SavedState {
  protected:
    void SetUp() override {
        std::string folder = testing::TempDir() + "saved_state_XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        folder_ = folder;
        path_ = (folder_ / "chat.state").string();
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void save() {
        FileSink sink(path_);
        state_.save(sink, kFingerprint);
        sink.commit();
    }
    std::optional<SequenceState> restore_file() {
        FileSource source(path_);
        return SequenceState::restore(layout_, pool_, source, kFingerprint);
    }
    std::ptrdiff_t files() const {
        return std::distance(std::filesystem::directory_iterator(folder_),
                             std::filesystem::directory_iterator());
    }
    void expect_code(ErrorCode code) {
        try {
            restore_file();
            ADD_FAILURE() << "accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_THAT(error.what(), HasSubstr(path_));
        }
    }

    std::filesystem::path folder_;
    std::string path_;
};

TEST_F(SavedFile, HoldsWhatMemoryHolds) {
    save();
    std::ifstream file(path_, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    ASSERT_EQ(bytes.size(), saved_.size());
    EXPECT_EQ(std::memcmp(bytes.data(), saved_.data(), bytes.size()), 0);
    EXPECT_EQ(restore_file().value().length(), 5);
    struct stat status {};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SavedFile, AppearsOnlyWhenComplete) {
    std::ofstream(path_) << "old";
    {
        FileSink sink(path_);
        sink.write(saved_);
        EXPECT_EQ(std::filesystem::file_size(path_), 3u);
    }
    EXPECT_EQ(std::filesystem::file_size(path_), 3u);
    EXPECT_EQ(files(), 1) << "the temporary file stayed";
    save();
    EXPECT_EQ(std::filesystem::file_size(path_), saved_.size());
    EXPECT_EQ(files(), 1);
}

TEST_F(SavedFile, ASymbolicLinkIsNeverFollowed) {
    const std::string target = (folder_ / "secret").string();
    std::ofstream(target) << "secret";
    std::filesystem::create_symlink(target, path_);
    expect_code(ErrorCode::InvalidFile);
    save();
    EXPECT_EQ(std::filesystem::file_size(target), 6u);
    EXPECT_FALSE(std::filesystem::is_symlink(path_));
}

TEST_F(SavedFile, MissingFilesPipesAndFoldersAreRefused) {
    expect_code(ErrorCode::NotFound);
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    expect_code(ErrorCode::InvalidFile);
    std::filesystem::remove(path_);
    std::filesystem::create_directory(path_);
    expect_code(ErrorCode::InvalidFile);
    EXPECT_THROW(FileSink((folder_ / "none" / "chat.state").string()), Error);
}

TEST_F(SavedFile, AFailedWriteIsAnErrorAndLeavesNothing) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_THROW(save(), Error);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_DFL);
    EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace coterie
