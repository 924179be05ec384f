#include <gtest/gtest.h>

#include "base/error.h"
#include "devices/device.h"

namespace coterie {
namespace {

TEST(Devices, WithoutABackendTheListIsEmptyAndSaysHowToGetOne) {
    const DeviceList list = list_devices();
    EXPECT_TRUE(list.devices.empty());
    EXPECT_NE(list.note.find("-DCOTERIE_CUDA=ON"), std::string::npos);
    EXPECT_EQ(list.note.find('\n'), std::string::npos);
}

TEST(Devices, OpeningOneIsRefusedWithItsNumber) {
    try {
        open_device(3);
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Unsupported);
        EXPECT_NE(std::string(error.what()).find("device 3"), std::string::npos);
    }
}

TEST(DeviceAddress, CountsBytes) { EXPECT_EQ(DeviceAddress{4096} + 256, DeviceAddress{4352}); }

}  // namespace
}  // namespace coterie
