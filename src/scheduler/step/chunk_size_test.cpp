#include "scheduler/step/chunk_size.h"

#include <gtest/gtest.h>

namespace coterie::scheduler {
namespace {

using std::chrono::milliseconds;

/// A machine that needs `base` for a step and `each` for a token of a prompt.
std::int64_t settle(ChunkSize& chunk, double base, double each) {
    for (int step = 0; step < 30; ++step) {
        const std::int64_t tokens = chunk.tokens();
        chunk.observe(tokens, base + each * static_cast<double>(tokens));
    }
    return chunk.tokens();
}

TEST(ChunkSize, SettlesWhereAStepTakesTheGivenTime) {
    ChunkSize chunk(milliseconds(200), 4096);
    const auto tokens = static_cast<double>(settle(chunk, 0.020, 0.001));
    EXPECT_NEAR(0.020 + 0.001 * tokens, 0.200, 0.005);
}

TEST(ChunkSize, FollowsAMachineThatSlowsDown) {
    ChunkSize chunk(milliseconds(200), 4096);
    settle(chunk, 0.0, 0.0002);
    EXPECT_LE(0.01 * static_cast<double>(settle(chunk, 0.0, 0.01)), 0.2001);
}

TEST(ChunkSize, StaysBetweenTheSmallestChunkAndTheBatch) {
    ChunkSize slow(milliseconds(100), 512);
    EXPECT_EQ(settle(slow, 5.0, 1.0), 16);
    ChunkSize fast(milliseconds(100), 512);
    EXPECT_EQ(settle(fast, 0.0, 1e-6), 512);
    ChunkSize tiny(milliseconds(100), 4);
    EXPECT_EQ(settle(tiny, 0.0, 1e-6), 4);
}

TEST(ChunkSize, DoesNotLearnFromStepsThatAreAnswersOnly) {
    ChunkSize chunk(milliseconds(100), 512);
    const std::int64_t before = chunk.tokens();
    chunk.observe(0, 3.0);
    chunk.observe(2, 3.0);
    EXPECT_EQ(chunk.tokens(), before);
}

}  // namespace
}  // namespace coterie::scheduler
