#include "expert_cache/simulation/simulated_machine.h"

#include <gtest/gtest.h>

namespace coterie::expert_cache {
namespace {

constexpr double kExpert = 3e6;

/// RAM 40 GB/s, as much as the CPU alone reads; link 20; device 1000.
Costs round_costs() {
    DeviceCosts device;
    device.link_bytes_per_second = 20e9;
    device.contended_link_bytes_per_second = 20e9;
    device.copy_seconds = 10e-6;
    device.memory_bytes_per_second = 1000e9;
    device.compute = {ComputeCosts{}};
    Costs costs;
    costs.kinds = {"any"};
    costs.cpu.read_bytes_per_second = 40e9;
    costs.cpu.handoff_seconds = 20e-6;
    costs.cpu.compute = {ComputeCosts{}};
    costs.devices = {device};
    costs.ram_bytes_per_second = 40e9;
    return costs;
}

SimulatedStep step_of(std::int32_t residents, std::int32_t fetches, std::int32_t on_cpu) {
    return {.device_seconds = 3e-6 * residents,
            .fetches = fetches,
            .fetched_seconds = 3e-6,
            .cpu_bytes = kExpert * on_cpu,
            .expert_bytes = kExpert};
}

double seconds_of(const SimulatedStep& step) {
    const Costs costs = round_costs();
    SimulatedMachine machine(costs, 1e6);
    machine.run(step);
    return machine.now();
}

TEST(SimulatedMachineTest, HitsTakeTheDevicesTime) {
    EXPECT_NEAR(seconds_of(step_of(8, 0, 0)), 24e-6, 1e-12);
}

TEST(SimulatedMachineTest, MissesTakeTheCpusTimeAndTheHandOff) {
    EXPECT_NEAR(seconds_of(step_of(6, 0, 2)), 20e-6 + 150e-6, 1e-12);
}

TEST(SimulatedMachineTest, FetchesWaitForTheHostAndRunAsTheyArrive) {
    EXPECT_NEAR(seconds_of(step_of(6, 2, 0)), 10e-6 + 2 * (10e-6 + 150e-6) + 3e-6, 1e-12);
}

/// The CPU reads 0.4 MB while the copy starts, 3 MB at half of RAM's rate beside it, and 5.6 MB alone.
TEST(SimulatedMachineTest, CpuAndLinkShareRam) {
    EXPECT_NEAR(seconds_of(step_of(0, 1, 3)), 10e-6 + 10e-6 + 150e-6 + 140e-6 + 10e-6, 1e-12);
}

TEST(SimulatedMachineTest, UploadsUseTheIdleLinkAndYieldToTheCpu) {
    const Costs costs = round_costs();
    SimulatedMachine machine(costs, 1e6);
    machine.upload({.layer = 3, .expert = 5, .bytes_left = 3e6});
    machine.device_works(100e-6);  // one chunk of 1 MB, 60 us, and 40 us of the next: 0.6 MB
    EXPECT_TRUE(machine.take_arrived().empty());
    machine.run(step_of(0, 0, 4));
    // The second chunk ends in the first half of the hand-off and 10 us of the CPU's time; the third waits.
    EXPECT_NEAR(machine.now(), 100e-6 + 20e-6 + 300e-6 + 5e-6, 1e-11);
    EXPECT_EQ(machine.waiting_uploads(), 1U);
    machine.device_works(60e-6);
    const auto arrived = machine.take_arrived();
    ASSERT_EQ(arrived.size(), 1U);
    EXPECT_EQ(arrived[0].layer, 3);
    EXPECT_EQ(arrived[0].expert, 5);
    EXPECT_EQ(machine.waiting_uploads(), 0U);
}

}  // namespace
}  // namespace coterie::expert_cache
