#include "scheduler/prefix/prefix_tree.h"

#include <algorithm>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace coterie::scheduler {
namespace {

using Tokens = std::vector<TokenId>;
using Match = PrefixTree::Match;

TEST(PrefixTree, FindsWhatSequencesShareWithAPrompt) {
    PrefixTree tree;
    tree.insert(1, Tokens{5, 6, 7, 8});
    tree.insert(2, Tokens{5, 6, 9});
    tree.insert(3, Tokens{4});
    EXPECT_THAT(tree.matches(Tokens{5, 6, 7, 1}), testing::ElementsAre(Match{1, 3}, Match{2, 2}));
    EXPECT_THAT(tree.matches(Tokens{5, 6, 9, 9}), testing::ElementsAre(Match{2, 3}, Match{1, 2}));
    EXPECT_THAT(tree.matches(Tokens{4}), testing::ElementsAre(Match{3, 1}));
    EXPECT_TRUE(tree.matches(Tokens{1, 2}).empty());
    EXPECT_TRUE(tree.matches(Tokens{}).empty());
}

TEST(PrefixTree, KeepsSharedTokensOnce) {
    PrefixTree tree;
    Tokens system(1000, 7);
    for (TokenId turn = 0; turn < 10; ++turn) {
        Tokens tokens = system;
        tokens.push_back(100 + turn);
        tree.insert(static_cast<PrefixTree::Id>(turn), tokens);
    }
    EXPECT_EQ(tree.nodes(), 12u);  // the root, the shared run, ten ends
    for (PrefixTree::Id id = 0; id < 10; ++id) tree.remove(id);
    EXPECT_EQ(tree.nodes(), 1u);
}

TEST(PrefixTree, ForgetsWhatIsRemoved) {
    PrefixTree tree;
    tree.insert(1, Tokens{1, 2, 3});
    tree.insert(2, Tokens{1, 2});
    tree.remove(1);
    tree.remove(99);
    EXPECT_THAT(tree.matches(Tokens{1, 2, 3}), testing::ElementsAre(Match{2, 2}));
    tree.check_integrity();
}

TEST(PrefixTree, AgreesWithALinearSearch) {
    const char* given = std::getenv("COTERIE_TEST_SEED");
    const auto seed = given ? std::strtoull(given, nullptr, 10) : 20261130ULL;
    SCOPED_TRACE(testing::Message() << "COTERIE_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    PrefixTree tree;
    std::map<PrefixTree::Id, Tokens> all;
    const auto tokens = [&] {
        Tokens made(random() % 9);
        for (TokenId& token : made) token = static_cast<TokenId>(random() % 3);
        return made;
    };
    for (PrefixTree::Id id = 0; id < 3000; ++id) {
        if (random() % 3 == 0 && !all.empty()) {
            const auto victim = std::next(all.begin(), static_cast<std::ptrdiff_t>(random() % all.size()));
            tree.remove(victim->first);
            all.erase(victim);
        } else if (all.size() < 30) {
            all[id] = tokens();
            tree.insert(id, all[id]);
        }
        tree.check_integrity();
        const Tokens prompt = tokens();
        std::map<PrefixTree::Id, std::int64_t> expected;
        for (const auto& [other, held] : all) {
            const auto length =
                std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first - held.begin();
            if (length > 0) expected[other] = length;
        }
        std::map<PrefixTree::Id, std::int64_t> found;
        for (const Match& match : tree.matches(prompt)) found[match.id] = match.length;
        ASSERT_EQ(found, expected);
    }
}

}  // namespace
}  // namespace coterie::scheduler
