#include "base/clock.h"

#include <gtest/gtest.h>
#include <thread>

namespace coterie {
namespace {

using std::chrono::milliseconds;

TEST(SteadyClock, AWaitTakesAtLeastItsTime) {
    SteadyClock clock;
    const Nanoseconds start = clock.now();
    clock.wait_until(start + milliseconds(2));
    EXPECT_GE(clock.now() - start, milliseconds(2));
}

TEST(SteadyClock, AWaitForThePastReturns) {
    SteadyClock clock;
    clock.wait_until(clock.now() - milliseconds(2));
}

TEST(SimulatedClock, StandsStillUntilDriven) {
    SimulatedClock clock;
    EXPECT_EQ(clock.now(), Nanoseconds(0));
    clock.advance(milliseconds(3));
    EXPECT_EQ(clock.now(), milliseconds(3));
}

TEST(SimulatedClock, AWaitJumpsAndNeverGoesBack) {
    SimulatedClock clock;
    clock.wait_until(std::chrono::hours(5));
    EXPECT_EQ(clock.now(), std::chrono::hours(5));
    clock.wait_until(milliseconds(1));
    EXPECT_EQ(clock.now(), std::chrono::hours(5));
}

TEST(SimulatedClock, WaitsOfManyThreadsEndAtTheLatest) {
    SimulatedClock clock;
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; ++i) {
        threads.emplace_back([&clock, i] {
            for (int step = 0; step < 1000; ++step) clock.wait_until(milliseconds(i * step));
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(clock.now(), milliseconds(4 * 999));
}

TEST(SaturatingAdd, KeepsNoLimitALimitlessTime) {
    EXPECT_EQ(saturating_add(milliseconds(2), milliseconds(3)), milliseconds(5));
    EXPECT_EQ(saturating_add(milliseconds(2), Nanoseconds::max()), Nanoseconds::max());
}

}  // namespace
}  // namespace coterie
