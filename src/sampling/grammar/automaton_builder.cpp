#include "sampling/grammar/automaton_builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie::grammar {

void AutomatonBuilder::add(RuleId rule, const Nfa& nfa) {
    rule_ = rule;
    known_.clear();
    waiting_.clear();
    seen_.assign(nfa.states.size(), false);
    starts[rule] = node_of(nfa, {nfa.start});
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        const Subset& subset = *waiting_[i];
        const NodeId node = known_.at(subset);
        nodes[node].accepts = std::binary_search(subset.begin(), subset.end(), nfa.end);
        add_edges(nfa, node, subset);
        add_calls(nfa, node, subset);
    }
}

NodeId AutomatonBuilder::node_of(const Nfa& nfa, Subset subset) {
    const auto [place, is_new] = known_.try_emplace(closure(nfa, std::move(subset)), NodeId{});
    if (!is_new) return place->second;
    if (nodes.size() >= kMaxNodes) {
        fail(ErrorCode::InvalidArgument,
             "the grammar is too large: it needs more than {} states; use fewer or shorter repetitions",
             kMaxNodes);
    }
    place->second = static_cast<NodeId>(nodes.size());
    Automaton::Node& node = nodes.emplace_back();
    node.next.fill(kNoNode);
    rule_of.push_back(rule_);
    waiting_.push_back(&place->first);
    return place->second;
}

/// All states reached without reading. Only those that do something are kept: they make the subset what it
/// is.
AutomatonBuilder::Subset AutomatonBuilder::closure(const Nfa& nfa, Subset subset) {
    for (const StateId state : subset) seen_[state] = true;
    for (std::size_t i = 0; i < subset.size(); ++i) {
        for (const StateId next : nfa.states[subset[i]].free) {
            if (!seen_[next]) subset.push_back(next);
            seen_[next] = true;
        }
    }
    for (const StateId state : subset) seen_[state] = false;
    work_ += subset.size();
    if (work_ > kMaxWork)
        fail(ErrorCode::InvalidArgument, "the grammar is too ambiguous to be compiled; write it simpler");
    std::erase_if(subset, [&](StateId state) {
        const Nfa::State& s = nfa.states[state];
        return state != nfa.end && s.bytes.empty() && s.calls.empty();
    });
    std::sort(subset.begin(), subset.end());
    return subset;
}

/// Cuts the bytes where any edge begins or ends; within a piece all bytes have the same successors.
void AutomatonBuilder::add_edges(const Nfa& nfa, NodeId node, const Subset& subset) {
    std::vector<Nfa::ByteEdge> edges;
    std::vector<int> cuts;
    for (const StateId state : subset) {
        for (const Nfa::ByteEdge& edge : nfa.states[state].bytes) {
            edges.push_back(edge);
            cuts.push_back(edge.bytes.first);
            cuts.push_back(edge.bytes.last + 1);
        }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::sort(edges.begin(), edges.end(),
              [](const auto& a, const auto& b) { return a.bytes.first < b.bytes.first; });
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        Subset targets;
        for (const Nfa::ByteEdge& edge : edges) {
            if (edge.bytes.first > cuts[i]) break;
            if (edge.bytes.last >= cuts[i]) targets.push_back(edge.to);
        }
        work_ += edges.size();
        if (targets.empty()) continue;
        std::sort(targets.begin(), targets.end());
        targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
        const NodeId next = node_of(nfa, std::move(targets));
        for (int byte = cuts[i]; byte < cuts[i + 1]; ++byte)
            nodes[node].next[static_cast<std::size_t>(byte)] = next;
    }
}

void AutomatonBuilder::add_calls(const Nfa& nfa, NodeId node, const Subset& subset) {
    std::map<RuleId, Subset> backs;
    for (const StateId state : subset) {
        for (const Nfa::CallEdge& edge : nfa.states[state].calls) backs[edge.rule].push_back(edge.to);
    }
    for (auto& [rule, targets] : backs) {
        std::sort(targets.begin(), targets.end());
        targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
        const NodeId back = node_of(nfa, std::move(targets));
        calls.push_back({node, rule, back});
    }
}

}  // namespace coterie::grammar
