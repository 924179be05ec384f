#include "server/http/body_framing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coterie::server {
namespace {

TEST(BodyFraming, IsNoBodyWhereNothingIsSaidOfIt) {
    const BodyFraming framing = read_framing({}, {});
    EXPECT_FALSE(framing.refused());
    EXPECT_FALSE(framing.chunked);
    EXPECT_EQ(framing.length, 0u);
}

TEST(BodyFraming, ReadsALength) {
    EXPECT_EQ(read_framing({"0"}, {}).length, 0u);
    EXPECT_EQ(read_framing({"12"}, {}).length, 12u);
    EXPECT_EQ(read_framing({"12", "12"}, {}).length, 12u);
    EXPECT_EQ(read_framing({"18446744073709551615"}, {}).length, std::uint64_t(-1));
    EXPECT_FALSE(read_framing({"12", "12"}, {}).refused());
}

TEST(BodyFraming, RefusesWhatIsNoLength) {
    for (const char* text : {"-1", "+1", "", " ", "1 ", "1x", "0x10", "1.0", "1,1", "1, 1", "ten",
                             "18446744073709551616", "99999999999999999999999999999999"}) {
        const BodyFraming framing = read_framing({text}, {});
        EXPECT_EQ(framing.refusal, 400) << text;
        EXPECT_THAT(framing.problem, testing::HasSubstr("Content-Length")) << text;
    }
    EXPECT_EQ(read_framing({"5", "6"}, {}).refusal, 400);
    EXPECT_EQ(read_framing({"5", "5", "x"}, {}).refusal, 400);
}

TEST(BodyFraming, KnowsChunksAlone) {
    EXPECT_TRUE(read_framing({}, {"chunked"}).chunked);
    EXPECT_TRUE(read_framing({}, {"Chunked"}).chunked);
    for (const char* coding : {"gzip", "gzip, chunked", "identity", "", "chunked, chunked", "xchunked"}) {
        EXPECT_EQ(read_framing({}, {coding}).refusal, 501) << coding;
    }
    EXPECT_EQ(read_framing({}, {"chunked", "chunked"}).refusal, 501);
    EXPECT_EQ(read_framing({}, {"chunked", "gzip"}).refusal, 501);
}

TEST(BodyFraming, RefusesALengthBesideACoding) {
    EXPECT_EQ(read_framing({"5"}, {"chunked"}).refusal, 400);
    EXPECT_EQ(read_framing({"0"}, {"gzip"}).refusal, 400);
}

}  // namespace
}  // namespace coterie::server
