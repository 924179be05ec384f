#include "expert_cache/backoff.h"

#include <gtest/gtest.h>

namespace coterie::expert_cache {
namespace {

TEST(BackoffTest, WaitsTwiceAsLongEachTimeUpToALimit) {
    Backoff backoff(3, 10);
    EXPECT_TRUE(backoff.may_try(0));
    backoff.failed(100);
    EXPECT_FALSE(backoff.may_try(102));
    EXPECT_TRUE(backoff.may_try(103));
    backoff.failed(103);
    EXPECT_FALSE(backoff.may_try(108));
    EXPECT_TRUE(backoff.may_try(109));
    for (int i = 0; i < 100; ++i) backoff.failed(200);
    EXPECT_FALSE(backoff.may_try(209));
    EXPECT_TRUE(backoff.may_try(210));
}

TEST(BackoffTest, SuccessForgetsWhatFailedBefore) {
    Backoff backoff(1, 1 << 20);
    for (int i = 0; i < 10; ++i) backoff.failed(0);
    EXPECT_TRUE(backoff.failing());
    backoff.succeeded();
    EXPECT_FALSE(backoff.failing());
    EXPECT_TRUE(backoff.may_try(0));
    backoff.failed(50);
    EXPECT_TRUE(backoff.may_try(51));
}

}  // namespace
}  // namespace coterie::expert_cache
