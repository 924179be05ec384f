#include "sampling/grammar/lookalikes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace coterie::grammar {
namespace {

using Class = std::uint32_t;

struct Edge {
    std::uint32_t first_byte;  ///< up to the next edge's
    NodeId to;
};

/// The successors of each node, equal neighbours as one.
std::vector<std::vector<Edge>> short_edges(const Automaton& automaton) {
    std::vector<std::vector<Edge>> edges(automaton.size());
    for (std::size_t id = 0; id < automaton.size(); ++id) {
        const auto& next = automaton.node(static_cast<NodeId>(id)).next;
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            if (byte == 0 || next[byte] != next[byte - 1]) edges[id].push_back({byte, next[byte]});
        }
    }
    return edges;
}

/// Whether a byte is read before the node's calls come back. (A call to a rule that begins with a call counts
/// as empty: it is not looked into.)
bool calls_read(const Automaton& automaton, const Automaton::Node& node) {
    const auto calls = automaton.calls(node);
    return std::all_of(calls.begin(), calls.end(), [&](const Automaton::Call& call) {
        const Automaton::Node& start = automaton.node(call.start);
        return !start.accepts && start.calls == 0;
    });
}

/// What one round tells about a node: itself, or its end, its calls and the classes of its successors.
std::vector<Class> description(const Automaton& automaton, NodeId id, const std::vector<Edge>& edges,
                               const std::vector<Class>& classes) {
    const Automaton::Node& node = automaton.node(id);
    if (!calls_read(automaton, node)) return {0, id};
    std::vector<Class> text = {node.accepts ? 2u : 1u, node.calls};
    for (const Automaton::Call& call : automaton.calls(node)) {
        text.push_back(call.start);
        text.push_back(classes[call.back]);
    }
    for (const Edge& edge : edges) {
        const Class to = edge.to == kNoNode ? 0 : classes[edge.to] + 1;
        // Neighbours of one class are one edge, whatever nodes they lead to.
        if (&edge != edges.data() && text.back() == to) continue;
        text.push_back(edge.first_byte);
        text.push_back(to);
    }
    return text;
}

/// Classes of nodes that n bytes do not tell apart, for growing n. A class that splits keeps its number for
/// one part, so that in a round only nodes before renumbered ones must be looked at again.
class Refinement {
  public:
    explicit Refinement(const Automaton& automaton)
        : automaton_(automaton), edges_(short_edges(automaton)), classes_(automaton.size(), 0) {
        for (std::size_t id = 0; id < automaton.size(); ++id) {
            for (const Edge& edge : edges_[id]) {
                if (edge.to != kNoNode) before_.emplace_back(edge.to, static_cast<NodeId>(id));
            }
            for (const Automaton::Call& call : automaton.calls(automaton.node(static_cast<NodeId>(id))))
                before_.emplace_back(call.back, static_cast<NodeId>(id));
            dirty_.push_back(static_cast<NodeId>(id));
        }
        std::sort(before_.begin(), before_.end());
        members_ = {automaton.size()};
        texts_.resize(1);
    }

    /// One byte more. False when that told nothing apart any more.
    bool refine() {
        std::vector<std::size_t> dirty_members(members_.size(), 0);
        for (const NodeId id : dirty_) ++dirty_members[classes_[id]];
        std::map<std::pair<Class, std::vector<Class>>, Class> split;
        std::vector<std::pair<NodeId, Class>> moves;
        std::vector<bool> has_text(members_.size(), false);
        for (const NodeId id : dirty_) {
            const Class old = classes_[id];
            std::vector<Class> text = description(automaton_, id, edges_[id], classes_);
            ++work_;
            // Where no member is as it was, the first one says what the class is from now on.
            if (dirty_members[old] == members_[old] && !has_text[old]) texts_[old] = text;
            has_text[old] = true;
            if (text == texts_[old]) continue;
            const auto [place, is_new] = split.try_emplace({old, text}, static_cast<Class>(texts_.size()));
            if (is_new) texts_.push_back(std::move(text));
            moves.emplace_back(id, place->second);
        }
        apply(moves);
        return !moves.empty();
    }

    std::size_t work() const { return work_; }
    const std::vector<Class>& classes() const { return classes_; }

  private:
    void apply(const std::vector<std::pair<NodeId, Class>>& moves) {
        members_.resize(texts_.size(), 0);
        dirty_.clear();
        for (const auto& [id, to] : moves) {
            --members_[classes_[id]];
            ++members_[to];
            classes_[id] = to;
            const auto first = std::lower_bound(before_.begin(), before_.end(), std::pair(id, NodeId{0}));
            for (auto edge = first; edge != before_.end() && edge->first == id; ++edge)
                dirty_.push_back(edge->second);
        }
        std::sort(dirty_.begin(), dirty_.end());
        dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
    }

    const Automaton& automaton_;
    std::vector<std::vector<Edge>> edges_;
    std::vector<Class> classes_;
    std::vector<std::pair<NodeId, NodeId>> before_;  // a node and one that leads to it
    std::vector<NodeId> dirty_;
    std::vector<std::size_t> members_;       // by class
    std::vector<std::vector<Class>> texts_;  // by class: the description of its members
    std::size_t work_ = 0;
};

std::vector<NodeId> all_alone(std::size_t size) {
    std::vector<NodeId> nodes(size);
    std::iota(nodes.begin(), nodes.end(), NodeId{0});
    return nodes;
}

}  // namespace

std::vector<NodeId> find_lookalikes(const Automaton& automaton, std::size_t bytes) {
    const std::size_t most_work = 20 * automaton.size();
    Refinement refinement(automaton);
    for (std::size_t round = 0; round < bytes && refinement.refine(); ++round) {
        if (refinement.work() > most_work) return all_alone(automaton.size());
    }
    std::map<Class, NodeId> first;
    std::vector<NodeId> lookalikes;
    for (const Class number : refinement.classes()) {
        const auto id = static_cast<NodeId>(lookalikes.size());
        lookalikes.push_back(first.try_emplace(number, id).first->second);
    }
    return lookalikes;
}

}  // namespace coterie::grammar
