#include "sampling/grammar/compile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/automaton_builder.h"
#include "sampling/grammar/rule_checks.h"

namespace coterie::grammar {
namespace {

/// All rules that the root needs, those that repetitions become included.
AutomatonBuilder build_all(RuleSet& rules, RuleId root) {
    AutomatonBuilder built;
    NfaBuilder nfas(rules);
    std::set<RuleId> seen = {root};
    std::vector<RuleId> waiting = {root};
    while (!waiting.empty()) {
        const RuleId rule = waiting.back();
        waiting.pop_back();
        COTERIE_CHECK(rules.is_defined(rule));
        const std::size_t first = built.calls.size();
        built.add(rule, nfas.build(rule));
        for (std::size_t i = first; i < built.calls.size(); ++i) {
            if (seen.insert(built.calls[i].rule).second) waiting.push_back(built.calls[i].rule);
        }
    }
    return built;
}

std::vector<Automaton::Call> link_calls(AutomatonBuilder& built) {
    std::stable_sort(built.calls.begin(), built.calls.end(),
                     [](const auto& a, const auto& b) { return a.caller < b.caller; });
    std::vector<Automaton::Call> calls;
    for (const AutomatonBuilder::PendingCall& call : built.calls) {
        Automaton::Node& node = built.nodes[call.caller];
        if (node.calls++ == 0) node.first_call = static_cast<std::uint32_t>(calls.size());
        calls.push_back({built.starts.at(call.rule), call.back});
    }
    return calls;
}

/// Thoughts and white space.
ExpressionId tagged_thoughts(RuleSet& rules, const GrammarLeadIn& lead_in) {
    const ExpressionId space = rules.repeat(rules.characters({{' ', ' '}, {'\n', '\n'}}), 0, 4);
    ExpressionId thoughts =
        rules.sequence({rules.free_text(lead_in.close), rules.marker(lead_in.close), space});
    if (lead_in.kind == GrammarLeadIn::Kind::Optional)
        thoughts = rules.optional(rules.sequence({rules.marker(lead_in.open), thoughts}));
    return thoughts;
}

/// A message on the analysis channel, if any, and the beginning of one on the final channel.
ExpressionId harmony_channels(RuleSet& rules) {
    const ExpressionId analysis =
        rules.sequence({rules.marker("<|channel|>"), rules.bytes("analysis"), rules.marker("<|message|>"),
                        rules.free_text("<|end|>"), rules.marker("<|end|>"), rules.marker("<|start|>"),
                        rules.bytes("assistant")});
    const ExpressionId json =
        rules.sequence({rules.bytes(" "), rules.marker("<|constrain|>"), rules.bytes("json")});
    return rules.sequence({rules.optional(analysis), rules.marker("<|channel|>"), rules.bytes("final"),
                           rules.optional(json), rules.marker("<|message|>")});
}

RuleId with_lead_in(RuleSet& rules, RuleId root, const GrammarLeadIn& lead_in) {
    using Kind = GrammarLeadIn::Kind;
    if (lead_in.kind == Kind::None) return root;
    const ExpressionId before =
        lead_in.kind == Kind::Harmony ? harmony_channels(rules) : tagged_thoughts(rules, lead_in);
    const RuleId whole = rules.new_rule("the whole answer");
    rules.define(whole, rules.sequence({before, rules.call(root)}));
    return whole;
}

}  // namespace

std::unique_ptr<const Automaton> compile(RuleSet& rules, RuleId root) {
    AutomatonBuilder built = build_all(rules, root);
    refuse_left_recursion(built, rules);
    remove_dead_ends(built, root);
    std::vector<Automaton::Call> calls = link_calls(built);
    for (Automaton::Node& node : built.nodes) {
        node.has_bytes =
            std::any_of(node.next.begin(), node.next.end(), [](NodeId next) { return next != kNoNode; });
    }
    return std::make_unique<const Automaton>(std::move(built.nodes), std::move(calls), built.starts.at(root),
                                             rules.token_names());
}

GrammarPointer compile(RuleSet& rules, RuleId root, const GrammarLeadIn& lead_in) {
    return std::make_shared<const Grammar>(compile(rules, with_lead_in(rules, root, lead_in)));
}

}  // namespace coterie::grammar
