#include "expert_cache/planner/plan_step.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace coterie::expert_cache {
namespace {

/// A problem and what it refers to.
struct Case {
    std::vector<UsedExpert> used;
    std::vector<std::int32_t> spare{2};
    std::int32_t home = 0;
    Costs costs;
};

constexpr std::uint64_t kBytes = 2'857'000;

/// A 3090 on two channels of DDR4, experts of 2.9 MB: a miss takes the CPU 68 us, a copy at least 127 us.
Case desktop(std::int32_t hits, std::int32_t misses) {
    Case at;
    DeviceCosts device;
    device.link_bytes_per_second = 24e9;
    device.contended_link_bytes_per_second = 20e9;
    device.copy_seconds = 8e-6;
    device.memory_bytes_per_second = 936e9;
    device.handoff_seconds = 40e-6;
    device.compute = {{.expert_seconds = 0, .row_seconds = 0.05e-6}};
    at.costs.kinds = {"Q4_K"};
    at.costs.cpu.read_bytes_per_second = 42e9;
    at.costs.cpu.handoff_seconds = 15e-6;
    at.costs.cpu.compute = {{.expert_seconds = 0, .row_seconds = 20e-6}};
    at.costs.devices = {device};
    at.costs.ram_bytes_per_second = 44e9;
    for (std::int32_t i = 0; i < hits + misses; ++i) {
        at.used.push_back({.expert = i, .tokens = 1, .device = i < hits ? 0 : kNoDevice});
    }
    return at;
}

std::vector<Assignment> plan(const Case& at, double* finish = nullptr) {
    StepWorkspace workspace(static_cast<std::int64_t>(at.used.size()), 1);
    std::vector<Assignment> assignments(at.used.size());
    const StepProblem problem{at.used, at.spare, kBytes, 0, at.home};
    const double seconds = plan_step(problem, at.costs, workspace, assignments);
    if (finish) *finish = seconds;
    return assignments;
}

std::int64_t count(const std::vector<Assignment>& assignments, Work work) {
    return std::count_if(assignments.begin(), assignments.end(),
                         [&](const Assignment& assignment) { return assignment.work == work; });
}

TEST(PlanStepTest, WithoutMissesNothingLeavesTheDevice) {
    double finish = 0;
    EXPECT_EQ(count(plan(desktop(8, 0), &finish), Work::Resident), 8);
    EXPECT_NEAR(finish, 8 * static_cast<double>(kBytes) / 936e9, 1e-12);
}

TEST(PlanStepTest, OneMissGoesToTheCpu) { EXPECT_EQ(count(plan(desktop(7, 1)), Work::Cpu), 1); }

TEST(PlanStepTest, AWantedExpertIsFetchedWhereItsUploadWouldCostMore) {
    Case at = desktop(7, 1);
    at.used.back().fetch_gain_seconds = 68e-6F;
    EXPECT_EQ(count(plan(at), Work::Fetch), 1);
    at.spare = {0};
    EXPECT_EQ(count(plan(at), Work::Fetch), 0);
}

TEST(PlanStepTest, RamThatServesBothSplitsTheMisses) {
    Case at = desktop(4, 4);
    at.costs.ram_bytes_per_second = 42e9;  // the CPU alone takes it all
    EXPECT_EQ(count(plan(at), Work::Fetch), 0);
    at.costs.ram_bytes_per_second = 90e9;
    EXPECT_EQ(count(plan(at), Work::Fetch), 1);
    EXPECT_EQ(count(plan(at), Work::Cpu), 3);
}

TEST(PlanStepTest, ManyTokensAreFetchedAndFewStayOnTheCpu) {
    Case at = desktop(0, 8);
    at.spare = {8};
    for (std::size_t i = 0; i < 8; ++i) at.used[i].tokens = i < 4 ? 200 : 2;
    const std::vector<Assignment> assignments = plan(at);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(assignments[i].work, Work::Fetch);
    EXPECT_GE(count(assignments, Work::Cpu), 3);
}

TEST(PlanStepTest, ASlowDeviceLeavesItsResidentsToTheCpu) {
    Case at = desktop(8, 0);
    at.costs.devices[0].memory_bytes_per_second = 20e9;
    EXPECT_GE(count(plan(at), Work::Cpu), 4);
    at.home = kNoDevice;
    at.costs.devices[0].handoff_seconds = 1;
    EXPECT_EQ(count(plan(at), Work::Cpu), 8);
}

}  // namespace
}  // namespace coterie::expert_cache
