#include "cli/output_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>
#include <thread>

#include "base/error.h"

namespace coterie::cli {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
  protected:
    OutputFileTest() { fs::create_directories(folder_); }
    ~OutputFileTest() override { fs::remove_all(folder_); }

    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }

    const fs::path folder_ = fs::temp_directory_path() / "coterie_output_file_test";
    const std::string path_ = (folder_ / "out").string();
};

TEST_F(OutputFileTest, AppearsWhenCommitted) {
    std::ofstream(path_) << "before";
    OutputFile file(path_);
    file.write("after");
    EXPECT_EQ(content(), "before");
    file.commit();
    EXPECT_EQ(content(), "after");
    EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
    {
        OutputFile file(path_);
        file.write("half");
    }
    EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, WritesALinksTarget) {
    std::ofstream(path_) << "before";
    const std::string link = (folder_ / "link").string();
    fs::create_symlink("out", link);
    OutputFile file(link);
    file.write("after");
    file.commit();
    EXPECT_EQ(content(), "after");
    EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(OutputFileTest, WritesToDevicesAndPipesAndReplacesNone) {
    OutputFile device("/dev/null");
    device.write("lost");
    device.commit();
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    std::string read;
    std::thread reader([&] { read = content(); });
    {
        OutputFile pipe(path_);
        pipe.write("through");
        pipe.commit();
    }
    reader.join();
    EXPECT_EQ(read, "through");
    EXPECT_TRUE(fs::is_fifo(path_));
    EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, SaysHowMuchOfItFitted) {
    OutputFile file("/dev/full", 3'000'000);
    file.write(std::string(300, 'x'));  // stays in the buffer
    try {
        file.commit();
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "/dev/full: cannot be written: No space left on device; 300 B of 2.86 MiB were written");
    }
}

TEST_F(OutputFileTest, NamesAPathThatCannotBeWritten) {
    try {
        OutputFile file("/nowhere/out");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Io);
        EXPECT_NE(std::string(error.what()).find("/nowhere/out"), std::string::npos);
    }
}

}  // namespace
}  // namespace coterie::cli
