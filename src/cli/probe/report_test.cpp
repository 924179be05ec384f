#include "cli/probe/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coterie::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

engine::MachineProfile with_a_gpu() {
    engine::MachineProfile profile;
    profile.machine.threads = 4;
    profile.ram_reads = {{1, 10e9}, {4, 25e9}};
    profile.integer_peak = 1.2e12;
    profile.experts = {{"one kind", 1000, 2000, {10e-6, 20e-6, 30e-6, 140e-6}},
                       {"another kind", 1000, 2000, {11e-6, 21e-6, 31e-6, 41e-6}}};
    engine::GpuTimes& gpu = profile.gpus.emplace_back();
    gpu.index = 1;
    gpu.name = "a card";
    gpu.to_device = 20e9;
    gpu.from_device = 21e9;
    gpu.both_ways = 32e9;
    gpu.contended_to_device = 13e9;
    gpu.contended_ram_read = 14e9;
    gpu.pageable_to_device = 5e9;
    gpu.pageable_from_device = 6e9;
    gpu.own_memory = 936e9;
    gpu.hand_off_seconds = 5e-6;
    gpu.linked_expert_seconds = {55.5e-6, 0};
    return profile;
}

TEST(ProbeReport, HasEveryNumberOfAGpu) {
    const std::string text = render_text(with_a_gpu());
    EXPECT_THAT(text, HasSubstr("GPU 1, a card\n"));
    for (const char* line :
         {"to the GPU +20.0 GB/s", "from the GPU +21.0 GB/s", "both together +32.0 GB/s",
          "to the GPU while the CPU reads RAM +13.0 GB/s", "the CPU meanwhile +14.0 GB/s",
          "to the GPU, memory not pinned +5.0 GB/s", "from the GPU, memory not pinned +6.0 GB/s",
          "its own memory, read and written +936.0 GB/s", "hand-off to the CPU and back +5.0 us",
          "one kind +55.5 us", "another kind +none"}) {
        EXPECT_THAT(text, ContainsRegex(line));
    }
    EXPECT_THAT(text, HasSubstr("each GB takes 50 ms"));
    EXPECT_THAT(text, HasSubstr("0.24 ms a token if all 48 layers do"));
}

TEST(ProbeReport, LeavesOutWhatWasNotMeasured) {
    engine::MachineProfile profile = with_a_gpu();
    profile.experts.clear();
    profile.gpus[0].linked_expert_seconds.clear();
    const std::string text = render_text(profile);
    EXPECT_THAT(text, Not(HasSubstr("One expert")));
    EXPECT_THAT(text, HasSubstr("4 threads"));
    EXPECT_THAT(text, HasSubstr("1 thread "));
    EXPECT_THAT(text, HasSubstr("takes 40.0 ms"));
    EXPECT_THAT(text, HasSubstr("200 tokens/s"));
    EXPECT_THAT(text, Not(HasSubstr("too low")));
}

}  // namespace
}  // namespace coterie::cli
