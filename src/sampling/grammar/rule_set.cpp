#include "sampling/grammar/rule_set.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/automaton.h"

namespace coterie::grammar {
namespace {

constexpr CodeRange kSurrogates = {0xD800, 0xDFFF};

std::vector<CodeRange> complement(const std::vector<CodeRange>& ranges) {
    std::vector<CodeRange> rest;
    char32_t next = 0;
    for (const CodeRange& range : ranges) {
        if (range.first > next) rest.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
    return rest;
}

std::vector<CodeRange> merged(std::vector<CodeRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
    std::vector<CodeRange> all;
    for (const CodeRange& range : ranges) {
        if (range.first > range.last) continue;
        if (!all.empty() && range.first <= all.back().last + 1) {
            all.back().last = std::max(all.back().last, range.last);
        } else {
            all.push_back(range);
        }
    }
    return all;
}

}  // namespace

std::vector<CodeRange> normalised(std::vector<CodeRange> ranges) {
    std::vector<CodeRange> refused = complement(merged(std::move(ranges)));
    refused.push_back(kSurrogates);
    return complement(merged(std::move(refused)));
}

ExpressionId RuleSet::add(Expression expression) {
    if (expressions_.size() >= kMaxExpressions) {
        fail(ErrorCode::InvalidArgument, "the grammar has more than {} parts", kMaxExpressions);
    }
    expressions_.push_back(std::move(expression));
    return static_cast<ExpressionId>(expressions_.size() - 1);
}

ExpressionId RuleSet::bytes(std::string_view text) {
    return add({.kind = Expression::Kind::Bytes, .text = std::string(text)});
}

ExpressionId RuleSet::characters(std::vector<CodeRange> ranges) {
    return add({.kind = Expression::Kind::Characters, .ranges = normalised(std::move(ranges))});
}

ExpressionId RuleSet::characters_except(std::vector<CodeRange> ranges) {
    return characters(complement(merged(std::move(ranges))));
}

ExpressionId RuleSet::sequence(std::vector<ExpressionId> parts) {
    if (parts.size() == 1) return parts[0];
    return add({.kind = Expression::Kind::Sequence, .parts = std::move(parts)});
}

ExpressionId RuleSet::choice(std::vector<ExpressionId> parts) {
    if (parts.size() == 1) return parts[0];
    return add({.kind = Expression::Kind::Choice, .parts = std::move(parts)});
}

ExpressionId RuleSet::repeat(ExpressionId part, std::uint32_t least, std::uint32_t most) {
    if (least > most) fail(ErrorCode::InvalidArgument, "repetition from {} to {} times", least, most);
    if (least > kMaxRepetitions || (most != kUnbounded && most > kMaxRepetitions)) {
        fail(ErrorCode::InvalidArgument, "more than {} repetitions of a part of the grammar",
             kMaxRepetitions);
    }
    return add({.kind = Expression::Kind::Repeat, .parts = {part}, .least = least, .most = most});
}

ExpressionId RuleSet::call(RuleId rule) { return add({.kind = Expression::Kind::Call, .rule = rule}); }

ExpressionId RuleSet::free_text(std::string_view avoided) {
    return add({.kind = Expression::Kind::FreeText, .text = std::string(avoided)});
}

ExpressionId RuleSet::graph(std::uint32_t points, std::vector<Expression::Edge> edges) {
    return add({.kind = Expression::Kind::Graph, .points = points, .edges = std::move(edges)});
}

ExpressionId RuleSet::token(std::string_view name) {
    token_names_.emplace_back(name);
    return bytes(spell_token(name));
}

ExpressionId RuleSet::marker(std::string_view text) {
    return choice({bytes(spell_token(text)), bytes(text)});
}

std::optional<RuleId> RuleSet::find(std::string_view name) const {
    const auto found = rules_by_name_.find(std::string(name));
    if (found == rules_by_name_.end()) return std::nullopt;
    return found->second;
}

RuleId RuleSet::rule(std::string_view name) {
    if (const auto known = find(name)) return *known;
    const RuleId id = new_rule(name);
    rules_by_name_.emplace(name, id);
    return id;
}

RuleId RuleSet::new_rule(std::string_view name) {
    if (names_.size() >= kMaxRules) {
        fail(ErrorCode::InvalidArgument, "the grammar has more than {} rules", kMaxRules);
    }
    names_.emplace_back(name);
    bodies_.emplace_back();
    return static_cast<RuleId>(names_.size() - 1);
}

}  // namespace coterie::grammar
