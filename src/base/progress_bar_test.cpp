#include "base/progress_bar.h"

#include <gtest/gtest.h>

namespace coterie {
namespace {

TEST(ProgressBarTest, SaysAmountShareAndRate) {
    EXPECT_EQ(ProgressBar::line("loading", ProgressBar::Unit::Bytes, 9'600'000'000, 19'200'000'000, 4.0),
              "loading [============>           ]  50 %  9.6 GB of 19.2 GB  2.4 GB/s");
    EXPECT_EQ(ProgressBar::line("prompt", ProgressBar::Unit::Tokens, 512, 512, 2.0),
              "prompt [========================] 100 %  512 tokens of 512 tokens  256 tokens/s");
}

TEST(ProgressBarTest, CopesWithNothing) {
    EXPECT_EQ(ProgressBar::line("x", ProgressBar::Unit::Bytes, 0, 0, 0.0),
              "x [========================] 100 %  0 MB of 0 MB  0 MB/s");
}

}  // namespace
}  // namespace coterie
