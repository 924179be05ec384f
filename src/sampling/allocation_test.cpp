// Counts what the program takes from the heap, to show that a token takes nothing.

#include <gtest/gtest.h>

#include "base/allocation_counter_for_test.h"
#include "sampling/grammar/grammar_constraint.h"
#include "sampling/grammar/grammar_for_test.h"
#include "sampling/sampler_chain.h"

namespace coterie {
namespace {

/// Allocations of 100 tokens after the first 10.
std::int64_t allocations_per_100(const SamplingOptions& options) {
    std::vector<float> logits(5000);
    for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>((i * 7919) % 5000) * 0.002f;
    SamplerChain chain(options, 5000);
    std::int64_t before = 0;
    for (int i = 0; i < 110; ++i) {
        if (i == 10) before = heap_allocations;
        chain.accept(chain.sample(logits));
    }
    return heap_allocations - before;
}

TEST(Allocation, ATokenTakesNothingFromTheHeap) {
    EXPECT_EQ(allocations_per_100({}), 0);
    EXPECT_EQ(allocations_per_100({.temperature = 0, .repeat_last_n = 8, .repeat_penalty = 1.1f}), 0);
    EXPECT_EQ(allocations_per_100({.dynatemp_range = 0.2f,
                                   .top_k = 0,
                                   .typical_p = 0.9f,
                                   .top_n_sigma = 3,
                                   .xtc_probability = 0.5f,
                                   .repeat_last_n = -1,
                                   .frequency_penalty = 0.1f}),
              0);
    EXPECT_EQ(allocations_per_100({.mirostat = 1}), 0);
    EXPECT_EQ(allocations_per_100({.mirostat = 2}), 0);
}

TEST(Allocation, ATokenUnderAGrammarTakesNothingFromTheHeap) {
    const auto vocabulary = grammar_test::vocabulary_of({"(a", "b)"});
    GrammarConstraint constraint(parse_gbnf("root ::= item*\nitem ::= \"(\" ([a-z] | item)* \")\""),
                                 vocabulary);
    const std::vector<float> logits(static_cast<std::size_t>(vocabulary->size()), 1.0f);
    SamplerChain chain({.temperature = 0}, vocabulary->size());
    const std::vector<std::int32_t> tokens = {'(', 'a', 256, 257, 'c', ')'};
    std::int64_t before = 0;
    for (std::size_t i = 0; i < 6000; ++i) {
        if (i == 60) before = heap_allocations;
        chain.sample(logits, constraint.mask());
        constraint.accept(tokens[i % tokens.size()]);
    }
    EXPECT_EQ(heap_allocations - before, 0);
}

TEST(Allocation, HistoriesGrowByDoubling) { EXPECT_LT(allocations_per_100({.dry_multiplier = 1}), 20); }

}  // namespace
}  // namespace coterie
