#include "sampling/grammar/rule_checks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace coterie::grammar {
namespace {

using Calls = std::vector<std::vector<std::size_t>>;  // by node: numbers of calls

NodeId callee(const AutomatonBuilder& built, std::size_t call) {
    return built.starts.at(built.calls[call].rule);
}

/// The nodes of `seeds` and all from which they are reached: a call leads on where both the callee's start
/// and the node behind the call do, a byte where its successor does and `bytes` says that bytes count.
enum class Bytes { Count, Block };
std::vector<bool> reaching(const AutomatonBuilder& built, std::vector<NodeId> seeds, Bytes bytes) {
    const std::size_t count = built.nodes.size();
    std::vector<std::vector<NodeId>> before(count);
    if (bytes == Bytes::Count) {
        for (std::size_t node = 0; node < count; ++node) {
            NodeId last = kNoNode;
            for (const NodeId next : built.nodes[node].next) {
                if (next != kNoNode && next != last) before[next].push_back(static_cast<NodeId>(node));
                last = next;
            }
        }
    }
    Calls uses(count);
    for (std::size_t call = 0; call < built.calls.size(); ++call) {
        uses[built.calls[call].back].push_back(call);
        uses[callee(built, call)].push_back(call);
    }
    std::vector<bool> reached(count, false);
    const auto mark = [&](NodeId node) {
        if (!reached[node]) seeds.push_back(node);
        reached[node] = true;
    };
    for (const NodeId seed : std::exchange(seeds, {})) mark(seed);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        const NodeId node = seeds[i];
        for (const NodeId earlier : before[node]) mark(earlier);
        for (const std::size_t call : uses[node]) {
            if (reached[built.calls[call].back] && reached[callee(built, call)])
                mark(built.calls[call].caller);
        }
    }
    return reached;
}

std::vector<NodeId> accepting(const AutomatonBuilder& built) {
    std::vector<NodeId> nodes;
    for (std::size_t node = 0; node < built.nodes.size(); ++node) {
        if (built.nodes[node].accepts) nodes.push_back(static_cast<NodeId>(node));
    }
    return nodes;
}

/// The rules that each rule may call before it has read anything.
std::map<RuleId, std::vector<RuleId>> first_calls(const AutomatonBuilder& built) {
    const std::vector<bool> may_be_empty = reaching(built, accepting(built), Bytes::Block);
    Calls from(built.nodes.size());
    for (std::size_t call = 0; call < built.calls.size(); ++call)
        from[built.calls[call].caller].push_back(call);
    std::map<RuleId, std::vector<RuleId>> all;
    for (const auto& [rule, start] : built.starts) {
        std::set<RuleId> called;
        std::set<NodeId> seen = {start};
        std::vector<NodeId> nodes = {start};
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            for (const std::size_t call : from[nodes[i]]) {
                called.insert(built.calls[call].rule);
                const NodeId back = built.calls[call].back;
                if (may_be_empty[callee(built, call)] && seen.insert(back).second) nodes.push_back(back);
            }
        }
        all[rule].assign(called.begin(), called.end());
    }
    return all;
}

}  // namespace

/// A depth-first search with a stack of its own, since rules may lead deep.
void refuse_left_recursion(const AutomatonBuilder& built, const RuleSet& rules) {
    const auto calls = first_calls(built);
    enum class Colour { New, Open, Done };
    std::map<RuleId, Colour> colours;
    for (const auto& [root, unused] : calls) {
        std::vector<std::pair<RuleId, std::size_t>> path;
        if (colours[root] == Colour::New) path.push_back({root, 0});
        while (!path.empty()) {
            auto& [rule, next] = path.back();
            colours[rule] = Colour::Open;
            if (next == calls.at(rule).size()) {
                colours[rule] = Colour::Done;
                path.pop_back();
                continue;
            }
            const RuleId called = calls.at(rule)[next++];
            if (colours[called] == Colour::Open) {
                fail(ErrorCode::InvalidArgument,
                     "the rule '{}' calls itself before it has read anything (left recursion); write it as a "
                     "repetition",
                     rules.name(called));
            }
            if (colours[called] == Colour::New) path.push_back({called, 0});
        }
    }
}

void remove_dead_ends(AutomatonBuilder& built, RuleId root) {
    const std::vector<bool> alive = reaching(built, accepting(built), Bytes::Count);
    if (!alive[built.starts.at(root)]) {
        fail(ErrorCode::InvalidArgument,
             "the grammar can never end: every way through its root leads to an endless recursion or to an "
             "empty choice");
    }
    for (Automaton::Node& node : built.nodes) {
        for (NodeId& next : node.next) {
            if (next != kNoNode && !alive[next]) next = kNoNode;
        }
    }
    std::erase_if(built.calls, [&](const AutomatonBuilder::PendingCall& call) {
        return !alive[call.back] || !alive[built.starts.at(call.rule)];
    });
}

}  // namespace coterie::grammar
