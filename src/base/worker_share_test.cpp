#include "base/worker_share.h"

#include <array>
#include <gtest/gtest.h>

namespace coterie {
namespace {

TEST(WorkerShare, SharesCoverTheRangeInOrderAndDifferByAUnit) {
    for (const std::int64_t count : {0, 1, 4, 5, 37, 768, 2048}) {
        for (const std::int64_t unit : {1, 4, 16}) {
            for (const int workers : {1, 2, 3, 16, 61}) {
                std::int64_t reached = 0;
                for (int w = 0; w < workers; ++w) {
                    const IndexRange share = worker_share(count, unit, w, workers);
                    EXPECT_EQ(share.begin, reached);
                    EXPECT_LE(share.begin, share.end);
                    EXPECT_TRUE(share.begin % unit == 0 || share.begin == count);
                    EXPECT_LT(share.size(), count / workers + 2 * unit);
                    reached = share.end;
                }
                EXPECT_EQ(reached, count) << unit << " " << workers;
            }
        }
    }
}

TEST(StretchPrefetch, EndsAfterItsBytesAndNotBefore) {
    const std::array<std::byte, 1000> memory{};
    StretchPrefetch none(memory.data(), 0);
    EXPECT_TRUE(none.done());
    StretchPrefetch all(memory.data(), memory.size());
    int steps = 0;
    for (; !all.done(); ++steps) all.step();
    EXPECT_EQ(steps, 2);  // 16 lines, 8 a step
}

}  // namespace
}  // namespace coterie
