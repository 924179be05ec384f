#include "base/page_out.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace coterie {
namespace {

TEST(PageOutTest, BytesOfAFileAreTheSameAfterwards) {
    const std::size_t size = 10 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 123;
    std::vector<unsigned char> expected(size);
    for (std::size_t i = 0; i < size; ++i) expected[i] = static_cast<unsigned char>(i * 31 >> 3);
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(expected.data(), 1, size, file), size);
    ASSERT_EQ(std::fflush(file), 0);
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const std::span bytes(static_cast<const std::byte*>(mapped), size);
    for (const auto part : {bytes, bytes.subspan(1), bytes.first(100), bytes.first(0), bytes.last(5000)}) {
        page_out(part);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), static_cast<const unsigned char*>(mapped)));
    }
    munmap(mapped, size);
    std::fclose(file);
}

}  // namespace
}  // namespace coterie
