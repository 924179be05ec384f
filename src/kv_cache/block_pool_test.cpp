#include "kv_cache/block_pool.h"

#include <cstring>
#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie {
namespace {

TEST(BlockPool, HoldsAsManyPagesAsTheBudget) {
    BlockPool pool(256, 1000);
    EXPECT_EQ(pool.pages(), 3u);
    for (PageId expected = 0; expected < 3; ++expected) EXPECT_EQ(pool.acquire(), expected);
    EXPECT_EQ(pool.acquire(), std::nullopt);
    EXPECT_EQ(pool.free_pages(), 0u);
    pool.check_integrity();
}

TEST(BlockPool, APageReturnsWithItsLastReference) {
    BlockPool pool(64, 128);
    const PageId page = pool.acquire().value();
    pool.add_reference(page);
    pool.release(page);
    EXPECT_EQ(pool.references(page), 1u);
    EXPECT_EQ(pool.free_pages(), 1u);
    pool.release(page);
    EXPECT_EQ(pool.free_pages(), 2u);
    EXPECT_EQ(pool.acquire(), page);
    pool.check_integrity();
}

TEST(BlockPool, PagesAreApartAlignedAndWritable) {
    BlockPool pool(192, 10 * 192);
    for (int i = 0; i < 10; ++i) std::memset(pool.data(pool.acquire().value()), i, 192);
    for (PageId page = 0; page < 10; ++page) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.data(page)) % 64, 0u);
        for (int i = 0; i < 192; ++i) ASSERT_EQ(pool.data(page)[i], std::byte(page));
    }
}

TEST(BlockPool, ABudgetIsReservedAndNotTouched) {
    BlockPool pool(1 << 20, std::uint64_t{1} << 36);  // 64 GiB: far more than a small machine has
    EXPECT_EQ(pool.pages(), std::uint64_t{1} << 16);
    *pool.data(pool.acquire().value()) = std::byte{1};
}

TEST(BlockPool, RefusesBudgetsThatCannotWork) {
    EXPECT_THROW(BlockPool(256, 255), Error);
    EXPECT_THROW(BlockPool(std::uint64_t{1} << 40, std::uint64_t{1} << 62), Error);
}

TEST(BlockPool, WithoutPageBytesThereAreNoPages) {
    BlockPool pool(0, 1000);
    EXPECT_EQ(pool.pages(), 0u);
    EXPECT_EQ(pool.acquire(), std::nullopt);
    pool.check_integrity();
}

TEST(BlockPool, ReleasingAFreePageIsCaught) {
    BlockPool pool(64, 128);
    const PageId page = pool.acquire().value();
    pool.release(page);
    EXPECT_THROW(pool.release(page), Error);
    EXPECT_THROW(pool.add_reference(page), Error);
    EXPECT_THROW(pool.release(1), Error);
}

}  // namespace
}  // namespace coterie
