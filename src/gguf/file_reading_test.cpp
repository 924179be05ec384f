#include "gguf/file_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "gguf/descriptor.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;
constexpr std::byte kUntouched{0xa5};

/// Whole pages for `bytes`, the first of them `shift` bytes into a page.
class Pages {
  public:
    explicit Pages(std::size_t bytes, std::size_t shift = 0) : shift_(shift), bytes_(bytes) {
        mapped_ = (bytes + shift + kPage - 1) / kPage * kPage + kPage;
        memory_ = static_cast<std::byte*>(
            mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        std::fill_n(memory_, mapped_, kUntouched);
    }
    ~Pages() { munmap(memory_, mapped_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::span<std::byte> span() const { return {memory_ + shift_, bytes_}; }
    /// Whether everything from the page after the bytes' last on is as it was.
    bool next_page_is_untouched() const {
        const std::byte* page = memory_ + mapped_ - kPage;
        return std::all_of(page, page + kPage, [](std::byte byte) { return byte == kUntouched; });
    }

  private:
    std::size_t shift_;
    std::size_t bytes_;
    std::size_t mapped_;
    std::byte* memory_;
};

class FileReading : public ::testing::TestWithParam<Reading> {
  protected:
    std::string write(std::size_t bytes) {
        content_.resize(bytes);
        for (std::size_t i = 0; i < bytes; ++i) content_[i] = static_cast<std::byte>(i * 2654435761u >> 13);
        folder_.write("file", content_);
        return (folder_.path() / "file").string();
    }
    testing::TemporaryFolder folder_;
    testing::Bytes content_;
};

TEST_P(FileReading, BringsEveryByteOfAnySize) {
    constexpr std::size_t kPiece = std::size_t{16} << 20;
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{511}, std::size_t{512}, kPage - 1, kPage, kPage + 1, 3 * kPage + 513,
          kPiece - 1, kPiece, kPiece + 1, 2 * kPiece + kPage + 7}) {
        const std::string path = write(bytes);
        const Descriptor file(path.c_str());
        const Pages pages(bytes);
        std::uint64_t last = 0;
        read_file(file.value(), path, pages.span(), GetParam(), [&](std::uint64_t done) {
            EXPECT_GE(done, last);
            last = done;
        });
        EXPECT_EQ(last, bytes);
        EXPECT_TRUE(std::equal(content_.begin(), content_.end(), pages.span().begin())) << bytes;
        EXPECT_TRUE(pages.next_page_is_untouched()) << bytes;
    }
}

// Memory off the blocks' boundaries is what many file systems refuse only when they read.
TEST_P(FileReading, GoesThroughThePageCacheWhereADirectReadIsRefused) {
    const std::string path = write(5 * kPage + 100);
    const Descriptor file(path.c_str());
    const Pages pages(content_.size(), 1);
    const Reading read = read_file(file.value(), path, pages.span(), GetParam(), [](std::uint64_t) {});
    if (GetParam() == Reading::Cached) {
        EXPECT_EQ(read, Reading::Cached);
    }
    EXPECT_TRUE(std::equal(content_.begin(), content_.end(), pages.span().begin()));
}

TEST_P(FileReading, NamesAFileThatEndsEarly) {
    const std::string path = write(2 * kPage + 5);
    const Descriptor file(path.c_str());
    const Pages pages(content_.size() + 1);
    EXPECT_THAT(testing::message_of(
                    [&] { read_file(file.value(), path, pages.span(), GetParam(), [](std::uint64_t) {}); }),
                AllOf(HasSubstr(path), HasSubstr("to its end")));
}

INSTANTIATE_TEST_SUITE_P(Ways, FileReading, ::testing::Values(Reading::Cached, Reading::Direct),
                         [](const auto& of) { return of.param == Reading::Direct ? "Direct" : "Cached"; });

}  // namespace
}  // namespace coterie::gguf
