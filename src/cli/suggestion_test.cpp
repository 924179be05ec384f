#include "cli/suggestion.h"

#include <gtest/gtest.h>
#include <vector>

namespace coterie::cli {
namespace {

TEST(SuggestionTest, CountsEdits) {
    EXPECT_EQ(edit_distance("", ""), 0);
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("abc", ""), 3);
    EXPECT_EQ(edit_distance("temp", "temp"), 0);
    EXPECT_EQ(edit_distance("tmp", "temp"), 1);
    EXPECT_EQ(edit_distance("temmp", "temp"), 1);
    EXPECT_EQ(edit_distance("tamp", "temp"), 1);
    EXPECT_EQ(edit_distance("tepm", "temp"), 1);  // neighbours swapped
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(SuggestionTest, OffersOnlyWhatIsNear) {
    const std::vector<std::string> commands{"run", "bench", "perplexity"};
    EXPECT_EQ(nearest("bnech", commands), "bench");
    EXPECT_EQ(nearest("perplex", commands), std::nullopt);
    EXPECT_EQ(nearest("perplexit", commands), "perplexity");
    EXPECT_EQ(nearest("serve", commands), std::nullopt);
    EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(SuggestionTest, PrefersTheNearest) {
    const std::vector<std::string> flags{"--top-k", "--top-p", "--temp"};
    EXPECT_EQ(nearest("--top-p", flags), "--top-p");
    EXPECT_EQ(nearest("--topp", flags), "--top-p");
}

}  // namespace
}  // namespace coterie::cli
