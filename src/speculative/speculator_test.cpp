#include "speculative/speculator.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/error.h"
#include "speculative/window.h"

namespace coterie::speculative {
namespace {

/// Always the same draft.
class FixedDrafter final : public Drafter {
  public:
    std::span<const TokenId> draft(std::span<const TokenId>, std::int64_t most) override {
        return std::span(draft_).first(std::min(draft_.size(), static_cast<std::size_t>(most)));
    }

  private:
    std::vector<TokenId> draft_ = std::vector<TokenId>(8, 1);
};

/// A step of n tokens takes 5 + n milliseconds.
StepCosts shared_costs() {
    StepCosts costs;
    for (int i = 0; i < 100; ++i) costs.observe(1 + i % 4, 0.005 + 0.001 * (1 + i % 4));
    return costs;
}

std::size_t drafted(Speculator& speculator, const StepCosts& costs) {
    StepBudget budget(costs, 1);
    return speculator.draft({}, 8, budget).size();
}

TEST(Speculator, DraftsFurtherTheMoreComesTrue) {
    const StepCosts costs = shared_costs();
    Speculator speculator(std::make_unique<FixedDrafter>());
    const std::size_t first = drafted(speculator, costs);
    EXPECT_GT(first, 0u);
    EXPECT_LT(first, 8u);
    for (int i = 0; i < 20; ++i) speculator.settle(4, false);
    EXPECT_EQ(drafted(speculator, costs), 8u);
    for (int i = 0; i < 40; ++i) speculator.settle(0, true);
    EXPECT_EQ(drafted(speculator, costs), 0u);
}

TEST(Speculator, TriesAgainAfterAWhile) {
    const StepCosts costs = shared_costs();
    Speculator speculator(std::make_unique<FixedDrafter>());
    for (int i = 0; i < 40; ++i) speculator.settle(0, true);
    int steps = 0;
    while (drafted(speculator, costs) == 0) ASSERT_LT(++steps, 200);
    EXPECT_GT(steps, 5);
}

TEST(Speculator, IsThereOnlyWhereDraftsAreWanted) {
    EXPECT_EQ(make_speculator({.source = parse_draft_source("none")}, 100), nullptr);
    EXPECT_NE(make_speculator({.source = parse_draft_source("ngram-simple")}, 100), nullptr);
    EXPECT_THROW(parse_draft_source("oracle"), Error);
}

TEST(Window, DrawsAsLongAsTheDraftComesTrue) {
    Window window;
    window.begin(std::vector<TokenId>{1, 2, 3}, std::vector<TokenId>{4, 5});
    EXPECT_EQ(window.tokens().size(), 5u);
    EXPECT_EQ(window.drafted(), 2);
    EXPECT_FALSE(window.draws(1));
    ASSERT_TRUE(window.draws(2));
    window.drew(4);
    ASSERT_TRUE(window.draws(3));
    window.drew(6);
    EXPECT_FALSE(window.draws(4));
    EXPECT_EQ(window.accepted(), 1);
    EXPECT_TRUE(window.rejected());
}

TEST(Window, DrawsATokenMoreThanTheDraftWhereAllOfItComesTrue) {
    Window window;
    window.begin(std::vector<TokenId>{1}, std::vector<TokenId>{2});
    window.drew(2);
    ASSERT_TRUE(window.draws(1));
    window.drew(3);
    EXPECT_EQ(window.accepted(), 1);
    EXPECT_FALSE(window.rejected());
    EXPECT_FALSE(window.draws(2));
}

TEST(Window, EndsWithTheText) {
    Window window;
    window.begin(std::vector<TokenId>{1}, std::vector<TokenId>{2, 3});
    window.drew(2);
    window.end();
    EXPECT_FALSE(window.draws(1));
    EXPECT_FALSE(window.rejected());
    EXPECT_EQ(window.accepted(), 1);
}

}  // namespace
}  // namespace coterie::speculative
