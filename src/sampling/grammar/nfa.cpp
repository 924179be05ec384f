#include "sampling/grammar/nfa.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace coterie::grammar {
namespace {

constexpr std::size_t kMaxCopiedStates = 20'000;  // of all copies for one repetition
constexpr std::size_t kStatesOfRange = 6;         // of characters with several bytes
constexpr std::size_t kMaxCopiedInAll = 50'000;   // of all copies for all of them

/// How much of `text` its own ends repeat: entry i is the longest proper prefix of text[0, i] that is also
/// its suffix (Knuth, Morris and Pratt 1977).
std::vector<std::size_t> borders(const std::string& text) {
    std::vector<std::size_t> border(text.size(), 0);
    for (std::size_t i = 1, matched = 0; i < text.size(); ++i) {
        while (matched > 0 && text[i] != text[matched]) matched = border[matched - 1];
        if (text[i] == text[matched]) ++matched;
        border[i] = matched;
    }
    return border;
}

}  // namespace

Nfa NfaBuilder::build(RuleId rule) {
    nfa_ = {};
    nfa_.start = new_state();
    nfa_.end = new_state();
    add(rules_.body(rule), nfa_.start, nfa_.end);
    return std::move(nfa_);
}

StateId NfaBuilder::new_state() {
    if (nfa_.states.size() >= kMaxStates) {
        fail(ErrorCode::InvalidArgument, "a rule of the grammar needs more than {} states", kMaxStates);
    }
    nfa_.states.emplace_back();
    return static_cast<StateId>(nfa_.states.size() - 1);
}

void NfaBuilder::add(ExpressionId id, StateId from, StateId to) {
    const Expression expression = rules_[id];
    switch (expression.kind) {
        case Expression::Kind::Bytes:
            return add_bytes(expression.text, from, to);
        case Expression::Kind::Characters:
            return add_characters(expression.ranges, from, to);
        case Expression::Kind::Sequence:
            return add_sequence(expression.parts, from, to);
        case Expression::Kind::Choice:
            for (const ExpressionId part : expression.parts) add(part, from, to);
            return;
        case Expression::Kind::Repeat:
            return add_repeat(id, from, to);
        case Expression::Kind::Call:
            return nfa_.states[from].calls.push_back({expression.rule, to});
        case Expression::Kind::FreeText:
            return add_free_text(expression.text, from, to);
        case Expression::Kind::Graph:
            return add_graph(expression, from, to);
    }
}

void NfaBuilder::add_bytes(const std::string& text, StateId from, StateId to) {
    if (text.empty()) return nfa_.states[from].free.push_back(to);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const StateId next = i + 1 == text.size() ? to : new_state();
        const auto byte = static_cast<std::uint8_t>(text[i]);
        nfa_.states[from].bytes.push_back({{byte, byte}, next});
        from = next;
    }
}

/// Equal rests of characters share their states.
void NfaBuilder::add_characters(std::span<const CodeRange> ranges, StateId from, StateId to) {
    std::map<ByteSequence, StateId> rests;
    for (const CodeRange& range : ranges) {
        for (const ByteSequence& sequence : utf8_sequences(range)) {
            StateId behind = to;
            for (std::size_t i = sequence.size() - 1; i > 0; --i) {
                const ByteSequence rest(sequence.begin() + static_cast<std::ptrdiff_t>(i), sequence.end());
                const auto [place, is_new] = rests.try_emplace(rest, 0);
                if (is_new) {
                    place->second = new_state();
                    nfa_.states[place->second].bytes.push_back({sequence[i], behind});
                }
                behind = place->second;
            }
            nfa_.states[from].bytes.push_back({sequence[0], behind});
        }
    }
}

void NfaBuilder::add_sequence(std::span<const ExpressionId> parts, StateId from, StateId to) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const StateId next = i + 1 == parts.size() ? to : new_state();
        add(parts[i], from, next);
        from = next;
    }
    if (parts.empty()) nfa_.states[from].free.push_back(to);
}

void NfaBuilder::add_repeat(ExpressionId id, StateId from, StateId to) {
    const std::uint32_t least = rules_[id].least;
    const std::uint32_t most = rules_[id].most;
    ExpressionId part = rules_[id].parts[0];
    const std::size_t copies = most == kUnbounded ? least + 1 : most;
    const std::size_t copied = copies > 1 ? copies * size_of(part) : 0;
    const bool is_much = copied > kMaxCopiedStates || (copied > 1000 && copied_ + copied > kMaxCopiedInAll);
    if (!is_much) copied_ += copied;
    if (is_much && rules_[part].kind != Expression::Kind::Call) {
        const RuleId rule = rules_.new_rule("a repeated part");
        rules_.define(rule, part);
        part = rules_.call(rule);
    }
    for (std::uint32_t i = 0; i < least; ++i) {
        const StateId next = new_state();
        add(part, from, next);
        from = next;
    }
    if (most == kUnbounded) {
        // The loop has states of its own, so that what else starts at `from` or ends at `to` stays outside.
        const StateId loop = new_state();
        const StateId again = new_state();
        nfa_.states[from].free.push_back(loop);
        nfa_.states[again].free.push_back(loop);
        nfa_.states[loop].free.push_back(to);
        return add(part, loop, again);
    }
    nfa_.states[from].free.push_back(to);
    for (std::uint32_t i = least; i < most; ++i) {
        const StateId next = new_state();
        add(part, from, next);
        nfa_.states[next].free.push_back(to);
        from = next;
    }
}

void NfaBuilder::add_free_text(const std::string& avoided, StateId from, StateId to) {
    const std::vector<std::size_t> border = borders(avoided);
    const std::size_t matches = std::max<std::size_t>(avoided.size(), 1);
    std::vector<StateId> states;  // by the number of bytes of `avoided` that were just read
    for (std::size_t i = 0; i < matches; ++i) {
        states.push_back(new_state());
        nfa_.states[states[i]].free.push_back(to);
    }
    nfa_.states[from].free.push_back(states[0]);
    for (std::size_t i = 0; i < matches; ++i) {
        for (int value = 0; value < 0xFE; ++value) {
            const auto byte = static_cast<std::uint8_t>(value);
            std::size_t matched = i;
            const auto fits = [&] {
                return matched < avoided.size() && static_cast<std::uint8_t>(avoided[matched]) == byte;
            };
            while (matched > 0 && !fits()) matched = border[matched - 1];
            if (fits()) ++matched;
            if (!avoided.empty() && matched == avoided.size()) continue;
            auto& edges = nfa_.states[states[i]].bytes;
            const bool goes_on =
                !edges.empty() && edges.back().to == states[matched] && edges.back().bytes.last + 1 == value;
            if (goes_on) {
                edges.back().bytes.last = byte;
            } else {
                edges.push_back({{byte, byte}, states[matched]});
            }
        }
    }
}

void NfaBuilder::add_graph(const Expression& graph, StateId from, StateId to) {
    std::vector<StateId> points;
    for (std::uint32_t i = 0; i < graph.points; ++i) points.push_back(new_state());
    nfa_.states[from].free.push_back(points.front());
    nfa_.states[points.back()].free.push_back(to);
    for (const Expression::Edge& edge : graph.edges) add(edge.part, points[edge.from], points[edge.to]);
}

/// Roughly how many states the expression takes.
std::size_t NfaBuilder::size_of(ExpressionId id) {
    if (const auto known = sizes_.find(id); known != sizes_.end()) return known->second;
    const Expression& expression = rules_[id];
    std::size_t size = 1 + expression.points + expression.text.size();
    for (const CodeRange& range : expression.ranges) size += range.last < 0x80 ? 0 : kStatesOfRange;
    if (expression.kind == Expression::Kind::FreeText) size += expression.text.size() * 64;
    for (const ExpressionId part : expression.parts) size += size_of(part);
    for (const Expression::Edge& edge : expression.edges) size += size_of(edge.part);
    if (expression.kind == Expression::Kind::Repeat) {
        const std::size_t copies = expression.most == kUnbounded ? expression.least + 1 : expression.most;
        size = std::min(size * std::max<std::size_t>(copies, 1), kMaxCopiedStates);
    }
    return sizes_[id] = size;
}

}  // namespace coterie::grammar
