#include "base/thread_pool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace coterie {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsTheBodyOnceOnEveryWorker) {
    ThreadPool pool(GetParam());
    for (int round = 0; round < 200; ++round) {
        std::vector<std::atomic<int>> calls(static_cast<std::size_t>(GetParam()));
        pool.run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
        for (const auto& count : calls) EXPECT_EQ(count, 1);
    }
}

TEST_P(ThreadPoolTest, CoversEachIndexOnce) {
    ThreadPool pool(GetParam());
    for (const std::int64_t count : {0, 1, 2, 63, 64, 1000}) {
        std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
        pool.parallel_for(count, 7, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    }
}

TEST_P(ThreadPoolTest, BarrierSeparatesPhases) {
    ThreadPool pool(GetParam());
    std::vector<int> first(static_cast<std::size_t>(GetParam()));
    std::atomic<int> wrong{0};
    for (int round = 1; round <= 300; ++round) {
        pool.run([&](int worker) {
            first[static_cast<std::size_t>(worker)] = round;
            pool.barrier();
            for (const int value : first) wrong += value != round;
            pool.barrier();
        });
    }
    EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, RethrowsTheFirstFailureAndGoesOn) {
    ThreadPool pool(GetParam());
    EXPECT_THROW(pool.run([](int) { throw std::runtime_error("x"); }), std::runtime_error);
    std::atomic<int> calls{0};
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace coterie
