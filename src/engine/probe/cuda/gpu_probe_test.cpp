#include "engine/probe/gpu_probe.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace coterie::engine {
namespace {

DeviceInfo first_gpu() {
    const DeviceList list = list_devices();
    if (list.devices.empty()) throw std::runtime_error(list.note);
    return list.devices.front();
}

TEST(GpuProbe, RatesAreThoseOfALink) {
    ThreadPool pool(0);
    const GpuTimes times = measure_gpu(first_gpu(), pool);
    for (const double rate :
         {times.to_device, times.from_device, times.contended_to_device, times.contended_ram_read,
          times.pageable_to_device, times.pageable_from_device}) {
        EXPECT_GT(rate, 1e8);
        EXPECT_LT(rate, 1e12);
    }
    EXPECT_GT(times.both_ways, 0.9 * std::max(times.to_device, times.from_device));
    EXPECT_LT(times.both_ways, 1.1 * (times.to_device + times.from_device));
    EXPECT_LT(times.contended_to_device, 1.1 * times.to_device);
    EXPECT_GT(times.own_memory, 2 * times.to_device);
    EXPECT_LT(times.own_memory, 1e14);
    EXPECT_GT(times.hand_off_seconds, 0.5e-6);
    EXPECT_LT(times.hand_off_seconds, 200e-6);
}

TEST(GpuProbe, AnExpertOverTheLinkTakesWhatTheLinkAllows) {
    ThreadPool pool(0);
    const DeviceInfo gpu = first_gpu();
    const double link = measure_gpu(gpu, pool).to_device;
    const std::vector<ExpertShape> shapes{usual_expert(),
                                          {.kind = "mixed", .up = DataType::Q6_K, .down = DataType::Q5_K}};
    for (const ExpertShape& shape : shapes) {
        const ProbeExperts experts(pool, shape, std::size_t{256} << 20);
        const double seconds = seconds_per_linked_expert(gpu.index, experts);
        const auto bytes =
            static_cast<double>(experts.gate().bytes_per_expert() + experts.up().bytes_per_expert() +
                                experts.down().bytes_per_expert());
        EXPECT_GT(seconds, 0.8 * bytes / link) << shape.kind;
        EXPECT_LT(seconds, 20 * bytes / link) << shape.kind;
    }
}

TEST(GpuProbe, AGpuThatIsNotThereIsRefused) {
    ThreadPool pool(1);
    EXPECT_THROW(measure_gpu({.name = "none", .index = 99}, pool), Error);
}

TEST(GpuProbe, TellsCardsApart) {
    for (const DeviceInfo& gpu : list_devices().devices) {
        EXPECT_EQ(gpu.uuid.size(), 32u);
        for (const DeviceInfo& other : list_devices().devices)
            EXPECT_EQ(other.uuid == gpu.uuid, other.index == gpu.index);
    }
}

}  // namespace
}  // namespace coterie::engine
