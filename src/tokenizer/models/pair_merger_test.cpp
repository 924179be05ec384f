#include "tokenizer/models/pair_merger.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace coterie {
namespace {

using Rules = std::map<std::pair<int, int>, Merge>;

/// The definition: merge the leftmost of the best pairs until none is left.
std::vector<int> merge_by_definition(std::vector<int> values, const Rules& rules) {
    while (true) {
        std::size_t best = values.size();
        Merge best_merge{};
        for (std::size_t i = 0; i + 1 < values.size(); ++i) {
            const auto rule = rules.find({values[i], values[i + 1]});
            if (rule == rules.end() || (best != values.size() && rule->second.rank >= best_merge.rank))
                continue;
            best = i;
            best_merge = rule->second;
        }
        if (best == values.size()) return values;
        values[best] = best_merge.value;
        values.erase(values.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
}

std::vector<int> merge_by_queue(const std::vector<int>& values, const Rules& rules, PairMerger& merger) {
    merger.clear();
    for (std::uint32_t i = 0; i < values.size(); ++i) merger.add({i, 1, values[i]});
    merger.merge([&](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<Merge> {
        EXPECT_EQ(left.begin + left.bytes, right.begin);
        const auto rule = rules.find({left.value, right.value});
        if (rule == rules.end()) return std::nullopt;
        return rule->second;
    });
    std::vector<int> result;
    merger.for_each([&](const MergeSymbol& symbol) { result.push_back(symbol.value); });
    return result;
}

// Few values and ranks, so that equal ranks, chains and overlapping pairs are common.
TEST(PairMerger, GivesWhatTheDefinitionGives) {
    constexpr unsigned kSeed = 7;
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    PairMerger merger;
    for (int round = 0; round < 3000; ++round) {
        Rules rules;
        for (int i = below(12); i >= 0; --i) rules[{below(6), below(6)}] = {below(5), below(6)};
        std::vector<int> values(static_cast<std::size_t>(below(40)));
        for (int& value : values) value = below(4);
        ASSERT_EQ(merge_by_queue(values, rules, merger), merge_by_definition(values, rules))
            << "round " << round;
    }
}

}  // namespace
}  // namespace coterie
