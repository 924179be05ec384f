#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sampling/grammar/automaton.h"
#include "sampling/grammar/nfa.h"

namespace coterie::grammar {

/// Collects rules' automata, made deterministic (Rabin and Scott's subsets), into one table.
class AutomatonBuilder {
  public:
    struct PendingCall {
        NodeId caller;
        RuleId rule;
        NodeId back;
    };

    /// Throws InvalidArgument above kMaxNodes and kMaxWork.
    void add(RuleId rule, const Nfa& nfa);

    std::vector<Automaton::Node> nodes;
    std::vector<RuleId> rule_of;     ///< by node
    std::vector<PendingCall> calls;  ///< callers ascending
    std::map<RuleId, NodeId> starts;

  private:
    using Subset = std::vector<StateId>;  // sorted

    NodeId node_of(const Nfa& nfa, Subset subset);
    void add_edges(const Nfa& nfa, NodeId node, const Subset& subset);
    void add_calls(const Nfa& nfa, NodeId node, const Subset& subset);
    Subset closure(const Nfa& nfa, Subset subset);

    static constexpr std::size_t kMaxWork = 50'000'000;

    RuleId rule_ = 0;
    std::map<Subset, NodeId> known_;
    std::vector<const Subset*> waiting_;
    std::vector<bool> seen_;
    std::size_t work_ = 0;
};

}  // namespace coterie::grammar
