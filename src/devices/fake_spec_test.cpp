#include "devices/fake_spec.h"

#include <gtest/gtest.h>
#include <string>

#include "base/error.h"

namespace coterie {
namespace {

TEST(FakeSpec, ReadsCountMemoryAndRate) {
    const auto devices = parse_fake_devices("2x64M@1G/s");
    ASSERT_EQ(devices.size(), 2u);
    for (const FakeDeviceSpec& device : devices) {
        EXPECT_EQ(device.memory_bytes, std::uint64_t{64} << 20);
        EXPECT_EQ(device.link_rate, 1e9);
        EXPECT_EQ(device.latency, Nanoseconds(0));
    }
}

TEST(FakeSpec, ReadsUnevenDevicesAndLatencies) {
    const auto devices = parse_fake_devices("1.5G@24.5GB/s:20us,32M@500M/s,3x1000KB@1K/s:1.5ms");
    ASSERT_EQ(devices.size(), 5u);
    EXPECT_EQ(devices[0].memory_bytes, std::uint64_t{3} << 29);
    EXPECT_EQ(devices[0].link_rate, 24.5e9);
    EXPECT_EQ(devices[0].latency, std::chrono::microseconds(20));
    EXPECT_EQ(devices[1].link_rate, 5e8);
    EXPECT_EQ(devices[4].memory_bytes, std::uint64_t{1024000});
    EXPECT_EQ(devices[4].latency, std::chrono::microseconds(1500));
}

TEST(FakeSpec, RefusesWithOneLineThatNamesTheSpecification) {
    for (const std::string text : {"",
                                   "x",
                                   "64M",
                                   "64M@",
                                   "64M@1G",
                                   "64M@0/s",
                                   "0@1G/s",
                                   "0x64M@1G/s",
                                   "1.5x64M@1G/s",
                                   "17x1M@1G/s",
                                   "16x1M@1G/s,1M@1G/s",
                                   "64M@1G/s,",
                                   "64M@1G/s;1M@1G/s",
                                   "64M@1G/s:20",
                                   "64M@1G/s:20s",
                                   "-1M@1G/s",
                                   "nanM@1G/s",
                                   "64M@infG/s",
                                   "99999999T@1G/s",
                                   "64M@1G/s:99999999ms",
                                   "2x2x64M@1G/s"}) {
        try {
            parse_fake_devices(text);
            ADD_FAILURE() << "accepted: " << text;
        } catch (const Error& error) {
            const std::string what = error.what();
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_NE(what.find("'" + text + "'"), std::string::npos) << what;
            EXPECT_NE(what.find("2x64M@1G/s"), std::string::npos);
            EXPECT_EQ(what.find('\n'), std::string::npos);
        }
    }
}

}  // namespace
}  // namespace coterie
