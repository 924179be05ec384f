#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

#include "gguf/test_files.h"

namespace {

std::atomic<std::size_t> allocated_bytes{0};

}  // namespace

// Counts what this test program asks for. Not inlined, or the compiler sees malloc's memory freed by delete.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    allocated_bytes += bytes;
    if (void* result = std::malloc(bytes)) return result;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept { std::free(pointer); }
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace coterie::gguf {
namespace {

using testing::Bytes;
using testing::RawFile;

std::size_t bytes_to_read(const Bytes& file) {
    const std::size_t before = allocated_bytes;
    try {
        read_directory(file, "model.gguf");
    } catch (const Error&) {  // refused or not, the memory counts
    }
    return allocated_bytes - before;
}

TEST(MemoryTest, ClaimsCostNothing) {
    constexpr std::uint64_t kClaim = std::uint64_t{1} << 40;
    const std::vector<Bytes> files = {
        RawFile(3, kClaim, 0).zeros(1000),
        RawFile(3, 0, kClaim).zeros(1000),
        RawFile(3, 0, 1).u64(kClaim).zeros(1000),
        RawFile(3, 0, 1).string("k").u32(8).u64(kClaim).zeros(1000),
        RawFile(3, 0, 1).string("k").u32(9).u32(8).u64(kClaim).zeros(1000),
        RawFile(3, 0, 1).string("k").u32(9).u32(4).u64(kClaim).zeros(1000),
        RawFile(3, 1, 0).u64(kClaim).zeros(1000),
        RawFile(3, 1, 0).tensor("w", {kClaim, 1 << 10}, 0, 0).zeros(1000),
        RawFile(3, 1, 0).string("w").u32(UINT32_MAX).zeros(1000),
    };
    for (const Bytes& file : files) EXPECT_LT(bytes_to_read(file), 16384U);
}

TEST(MemoryTest, StaysInProportionToTheDirectory) {
    Header header;
    header.set_array("tokens", std::vector<std::string>(100000, "token"));
    for (int i = 0; i < 1000; ++i)
        header.add_tensor({fmt::format("blk.{}.weight", i), DataType::F32, {8, 8}});
    EXPECT_LT(bytes_to_read(testing::with_pattern(header)), 1000U * 400);
}

}  // namespace
}  // namespace coterie::gguf
