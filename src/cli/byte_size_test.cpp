#include "cli/byte_size.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie::cli {
namespace {

TEST(ByteSizeTest, ReadsWhatPeopleWrite) {
    EXPECT_EQ(parse_byte_size("0", "--ram"), 0U);
    EXPECT_EQ(parse_byte_size("1234567", "--ram"), 1'234'567U);
    EXPECT_EQ(parse_byte_size("64M", "--ram"), std::uint64_t{64} << 20);
    EXPECT_EQ(parse_byte_size("1.5g", "--ram"), std::uint64_t{3} << 29);
    EXPECT_EQ(parse_byte_size("2T", "--ram"), std::uint64_t{2} << 40);
}

TEST(ByteSizeTest, RefusesTheRest) {
    for (const char* text : {"", "G", "-1", "1GB", "1 G", "1X", "nan", "inf", "1e9", "99999999T", "0x10"}) {
        EXPECT_THROW(parse_byte_size(text, "--ram"), Error) << text;
    }
}

TEST(ByteSizeTest, ShowsThreeDigits) {
    EXPECT_EQ(byte_size_text(0), "0");
    EXPECT_EQ(byte_size_text(999), "999 B");
    EXPECT_EQ(byte_size_text(1536), "1.50 KiB");
    EXPECT_EQ(byte_size_text(12 * 1024 * 1024), "12.0 MiB");
    EXPECT_EQ(byte_size_text((std::uint64_t{1} << 30) - 1), "1.00 GiB");
    EXPECT_EQ(byte_size_text(std::uint64_t{1} << 62), "4194304 TiB");
}

}  // namespace
}  // namespace coterie::cli
