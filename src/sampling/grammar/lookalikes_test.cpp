#include "sampling/grammar/lookalikes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

#include "base/split_mix.h"
#include "sampling/grammar/grammar.h"

namespace coterie::grammar {
namespace {

constexpr std::uint64_t kSeed = 5;

/// Whether no string of up to `bytes` bytes tells the nodes apart. Calls count as in the definition.
bool look_alike(const Automaton& automaton, NodeId a, NodeId b, std::size_t bytes) {
    if (a == b || bytes == 0) return true;
    const Automaton::Node& x = automaton.node(a);
    const Automaton::Node& y = automaton.node(b);
    if (x.accepts != y.accepts || x.calls != y.calls) return false;
    for (std::uint32_t i = 0; i < x.calls; ++i) {
        const Automaton::Call& c = automaton.calls(x)[i];
        const Automaton::Call& d = automaton.calls(y)[i];
        if (c.start != d.start || !look_alike(automaton, c.back, d.back, bytes - 1)) return false;
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
        const NodeId to = x.next[byte];
        if ((to == kNoNode) != (y.next[byte] == kNoNode)) return false;
        // Neighbouring bytes with the same successors say the same.
        if (byte > 0 && to == x.next[byte - 1] && y.next[byte] == y.next[byte - 1]) continue;
        if (to != kNoNode && !look_alike(automaton, to, y.next[byte], bytes - 1)) return false;
    }
    return true;
}

const char* const kGrammars[] = {
    "root ::= [a-z]{0,60}",
    "root ::= \"\\\"\" ([^\"\\\\] | \"\\\\\" [n\"]){3,40} \"\\\"\"",
    "root ::= (\"a\" x){0,30} | \"b\" y\nx ::= [0-9] | \"(\" root \")\"\ny ::= \"\" | \"c\" y",
    "root ::= \"abcabcabd\"* (\"abc\" | \"abd\" | \"ab\"){2,9}",
};

TEST(Lookalikes, AreThoseThatNoShortStringTellsApart) {
    SplitMix64 random(kSeed);
    for (const char* text : kGrammars) {
        const GrammarPointer grammar = parse_gbnf(text);
        const Automaton& automaton = grammar->automaton();
        for (const std::size_t bytes : {1u, 2u, 4u}) {
            const std::vector<NodeId> lookalikes = find_lookalikes(automaton, bytes);
            for (int i = 0; i < 400; ++i) {
                const auto a = static_cast<NodeId>(random.next() % automaton.size());
                const auto b = static_cast<NodeId>(random.next() % automaton.size());
                SCOPED_TRACE(fmt::format("{}: nodes {} and {}, {} bytes, seed {}", text, a, b, bytes, kSeed));
                const bool are_told_apart = lookalikes[a] != lookalikes[b];
                const bool have_calls = automaton.node(a).calls > 0 || automaton.node(b).calls > 0;
                // Nodes with calls may be told apart without need.
                if (!are_told_apart || !have_calls) {
                    EXPECT_NE(look_alike(automaton, a, b, bytes), are_told_apart);
                }
            }
        }
    }
}

TEST(Lookalikes, LongRepetitionsHaveFewKinds) {
    const GrammarPointer grammar = parse_gbnf("root ::= [^\"]{0,1000} \"\\\"\"");
    const std::vector<NodeId> lookalikes = find_lookalikes(grammar->automaton(), 16);
    EXPECT_GT(grammar->automaton().size(), 5000u);
    EXPECT_LT(std::set<NodeId>(lookalikes.begin(), lookalikes.end()).size(), 300u);
}

}  // namespace
}  // namespace coterie::grammar
