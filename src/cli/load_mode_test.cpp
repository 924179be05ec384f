#include "cli/load_mode.h"

#include <gtest/gtest.h>

namespace coterie::cli {
namespace {

TEST(LoadMode, TakesModelsIntoMemoryOnlyWhereExpertsTravelAndRamHasRoom) {
    constexpr std::uint64_t kModel = 1000;
    EXPECT_EQ(automatic_reading(kModel, 1000, 1'000'000), std::nullopt);  // all of it is on the GPU
    EXPECT_EQ(automatic_reading(kModel, 999, 1250), std::nullopt);
    EXPECT_EQ(automatic_reading(kModel, 999, 1251), gguf::Reading::Direct);
    EXPECT_EQ(automatic_reading(kModel, 999, 2250), gguf::Reading::Direct);
    EXPECT_EQ(automatic_reading(kModel, 999, 2251), gguf::Reading::Cached);  // beside the page cache's copy
}

}  // namespace
}  // namespace coterie::cli
