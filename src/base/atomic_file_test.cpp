#include "base/atomic_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"

namespace coterie {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
  protected:
    AtomicFileTest() { fs::create_directories(folder_); }
    ~AtomicFileTest() override { fs::remove_all(folder_); }

    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }
    static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

    const fs::path folder_ =
        fs::temp_directory_path() / ("coterie_atomic_file_test-" + std::to_string(getpid()));
    const std::string path_ = (folder_ / "out").string();
};

TEST_F(AtomicFileTest, ReplacesTheFileWhenCommittedAndNotBefore) {
    std::ofstream(path_) << "before";
    AtomicFile file(path_);
    file.write(bytes("after"));
    EXPECT_EQ(content(), "before");
    file.commit();
    EXPECT_EQ(content(), "after");
    EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
    AtomicFile(path_).write(bytes("half"));
    EXPECT_EQ(files(), 0);
}

/// As a full disk does: the system takes no more than so many bytes of a file.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int);
};

TEST_F(AtomicFileTest, SaysHowMuchFittedOnTheDisk) {
    const FileSizeLimit limit(5000);
    AtomicFile file(path_);
    file.write(bytes(std::string(4000, 'x')));
    try {
        file.write(bytes(std::string(4000, 'y')));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_NE(std::string(error.what()).find("cannot write " + path_ + ": File too large; 4.88 KiB"),
                  std::string::npos)
            << error.what();
    }
}

TEST_F(AtomicFileTest, NamesAPathThatCannotBeWritten) {
    try {
        AtomicFile file("/nowhere/out");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_NE(std::string(error.what()).find("/nowhere/out"), std::string::npos);
    }
}

}  // namespace
}  // namespace coterie
