#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sampling/grammar/rule_set.h"
#include "sampling/grammar/utf8_ranges.h"

namespace coterie::grammar {

using StateId = std::uint32_t;

/// One rule as a nondeterministic automaton (Thompson's construction).
struct Nfa {
    struct ByteEdge {
        ByteRange bytes;
        StateId to;
    };
    struct CallEdge {
        RuleId rule;
        StateId to;
    };
    struct State {
        std::vector<StateId> free;  ///< reached without reading
        std::vector<ByteEdge> bytes;
        std::vector<CallEdge> calls;
    };

    std::vector<State> states;
    StateId start = 0;
    StateId end = 0;
};

inline constexpr std::size_t kMaxStates = 1'000'000;  ///< of one rule's nondeterministic automaton

/// Builds rules' automata. Where copies for a repetition would be many, the repeated part becomes a rule of
/// its own, so that a copy is one call.
class NfaBuilder {
  public:
    explicit NfaBuilder(RuleSet& rules) : rules_(rules) {}
    /// Throws InvalidArgument above kMaxStates.
    Nfa build(RuleId rule);

  private:
    StateId new_state();
    void add(ExpressionId id, StateId from, StateId to);
    void add_bytes(const std::string& text, StateId from, StateId to);
    void add_characters(std::span<const CodeRange> ranges, StateId from, StateId to);
    void add_sequence(std::span<const ExpressionId> parts, StateId from, StateId to);
    void add_repeat(ExpressionId id, StateId from, StateId to);
    void add_free_text(const std::string& avoided, StateId from, StateId to);
    void add_graph(const Expression& graph, StateId from, StateId to);
    std::size_t size_of(ExpressionId id);

    RuleSet& rules_;
    Nfa nfa_;
    std::map<ExpressionId, std::size_t> sizes_;
    std::size_t copied_ = 0;  ///< states that repetitions have copied so far
};

}  // namespace coterie::grammar
