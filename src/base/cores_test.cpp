#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace coterie {
namespace {

/// Puts the calling thread on a core and lets it go again: the system has no reason to move it at once.
void stand_on(int core) {
    cpu_set_t allowed;
    cpu_set_t one;
    CPU_ZERO(&allowed);
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

cpu_set_t allowed_now() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    return allowed;
}

TEST(FreeCore, LeavesCoresThatOthersAreBoundTo) {
    const std::vector<int> cores = physical_cores();
    if (cores.size() < 2) return;  // nowhere to go
    const cpu_set_t before = allowed_now();
    const FreeCore free(cores[0], std::span(cores).subspan(1));
    int moved = 0;
    int arrived = 0;
    for (int i = 0; i < 20; ++i) {  // the system may move it meanwhile, but not each time
        stand_on(cores[1]);
        moved += free.settle();
        arrived += sched_getcpu() == cores[0];
    }
    EXPECT_GT(moved, 0);
    EXPECT_GT(arrived, 0);
    const cpu_set_t after = allowed_now();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(FreeCore, GoesNowhereThatTheThreadMayNotRun) {
    const std::vector<int> cores = physical_cores();
    if (cores.size() < 2) return;
    const cpu_set_t before = allowed_now();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores[1], &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_FALSE(FreeCore(cores[0], std::span(cores).subspan(1)).settle());
    const cpu_set_t after = allowed_now();
    EXPECT_TRUE(CPU_EQUAL(&one, &after));
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(FreeCore, StaysWhereNobodyIsBound) {
    const std::vector<int> cores = physical_cores();
    EXPECT_FALSE(FreeCore().settle());
    EXPECT_FALSE(FreeCore(cores[0], {}).settle());
}

}  // namespace
}  // namespace coterie
