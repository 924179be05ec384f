#include "cli/gpu_flags.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie::cli {
namespace {

DeviceList gpus(int count) {
    DeviceList list;
    for (int i = 0; i < count; ++i) list.devices.push_back({.name = "a GPU", .index = i, .memory_bytes = 1});
    if (count == 0) list.note = "none is built in";
    return list;
}

using Numbers = std::vector<int>;
using Shares = std::vector<double>;

std::string message_of(const GpuFlags& flags, const DeviceList& list) {
    try {
        choose_gpus(flags, list);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(GpuFlags, AllGpusShareTheLayersUnlessToldOtherwise) {
    EXPECT_EQ(choose_gpus({}, gpus(2)).gpus, (Numbers{0, 1}));
    EXPECT_TRUE(choose_gpus({}, gpus(2)).shares.empty());
    EXPECT_EQ(choose_gpus({.devices = "1"}, gpus(2)).gpus, Numbers{1});
    EXPECT_EQ(choose_gpus({.devices = "CUDA2,0"}, gpus(3)).gpus, (Numbers{2, 0}));
    EXPECT_TRUE(choose_gpus({.devices = "none"}, gpus(2)).gpus.empty());
    EXPECT_TRUE(choose_gpus({.layers = "0"}, gpus(2)).gpus.empty());
    EXPECT_TRUE(choose_gpus({}, gpus(0)).gpus.empty());
}

TEST(GpuFlags, OneGpuRunsAllWithoutASplit) {
    EXPECT_EQ(choose_gpus({.split_mode = "none"}, gpus(2)).gpus, Numbers{0});
    EXPECT_EQ(choose_gpus({.split_mode = "none", .main = 1}, gpus(2)).gpus, Numbers{1});
    EXPECT_EQ(choose_gpus({.devices = "1,0", .split_mode = "none"}, gpus(2)).gpus, Numbers{1});
}

TEST(GpuFlags, SharesBelongToTheGpusInTheirOrder) {
    const GpuChoice choice = choose_gpus({.devices = "2,1,0", .shares = "3,0,1.5"}, gpus(3));
    EXPECT_EQ(choice.gpus, (Numbers{2, 0}));
    EXPECT_EQ(choice.shares, (Shares{3, 1.5}));
}

TEST(GpuFlags, PromptsTakeLongWindowsWhereTheirRoomIsNotMissed) {
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
    DeviceList list = gpus(3);
    list.devices[0].memory_bytes = 24 * kGiB;
    list.devices[1].memory_bytes = 12 * kGiB;
    list.devices[2].memory_bytes = 8 * kGiB;
    const auto window = [&](std::uint64_t model, const Numbers& on,
                            const std::vector<std::uint64_t>& limits) {
        return default_window(model * kGiB, on, limits, list);
    };
    EXPECT_EQ(window(18, {0}, {}), 4096) << "fits";
    EXPECT_EQ(window(22, {0}, {}), 2048) << "fits barely";
    EXPECT_EQ(window(30, {0}, {}), 4096) << "does not fit";
    EXPECT_EQ(window(34, {0, 1}, {}), 2048);
    EXPECT_EQ(window(40, {0, 1}, {}), 4096);
    EXPECT_EQ(window(40, {0, 2}, {}), 2048) << "one is small";
    EXPECT_EQ(window(18, {0}, {12 * kGiB}), 4096);
    EXPECT_EQ(window(18, {0}, {6 * kGiB}), 2048);
    EXPECT_EQ(window(18, {0}, {0}), 4096) << "no limit";
}

TEST(GpuFlags, ErrorsNameTheFlag) {
    const auto names = [](const GpuFlags& flags, const char* flag) {
        EXPECT_NE(message_of(flags, gpus(2)).find(flag), std::string::npos)
            << flag << " in \"" << message_of(flags, gpus(2)) << "\"";
    };
    names({.devices = "2"}, "--device 2");
    names({.devices = "0,"}, "--device");
    names({.devices = "0,0"}, "twice");
    names({.devices = "CUDA"}, "--device CUDA");
    names({.split_mode = "row"}, "--split-mode row");
    names({.split_mode = "none", .main = 2}, "--main-gpu 2");
    names({.shares = "1"}, "--tensor-split 1");
    names({.shares = "1,x"}, "\"x\"");
    names({.shares = "1,-1"}, "\"-1\"");
    names({.shares = "1,nan"}, "\"nan\"");
    names({.shares = "0,0"}, "-ngl 0");
    EXPECT_NE(message_of({.devices = "0"}, gpus(0)).find("none is built in"), std::string::npos);
}

}  // namespace
}  // namespace coterie::cli
