#include "cli/short_flags.h"

#include <gtest/gtest.h>

namespace coterie::cli {
namespace {

using Arguments = std::vector<std::string>;

TEST(ShortFlagsTest, RewritesFlagsOfSeveralLettersAndKeepsTheirValues) {
    EXPECT_EQ(expand_short_flags({"run", "-ctk", "f16", "-ngl=99", "-no-cnv"}),
              (Arguments{"run", "--cache-type-k", "f16", "--n-gpu-layers=99", "--no-conversation"}));
}

TEST(ShortFlagsTest, LeavesEverythingElse) {
    const Arguments untouched{"-c", "512", "--ctk", "-ctkx", "ctk", "-1", ""};
    EXPECT_EQ(expand_short_flags(untouched), untouched);
}

TEST(ShortFlagsTest, StopsAtTheDoubleDash) {
    EXPECT_EQ(expand_short_flags({"-ub", "--", "-ub"}), (Arguments{"--ubatch-size", "--", "-ub"}));
}

}  // namespace
}  // namespace coterie::cli
