#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace coterie::grammar {

using ExpressionId = std::uint32_t;
using RuleId = std::uint32_t;

/// Code points first to last, both within.
struct CodeRange {
    char32_t first;
    char32_t last;
    bool operator==(const CodeRange&) const = default;
};
inline constexpr char32_t kLastCodePoint = 0x10FFFF;

/// A node of a rule's right side.
struct Expression {
    enum class Kind {
        Bytes,       ///< `text` as it is; empty: nothing is read
        Characters,  ///< one character of `ranges`
        Sequence,    ///< `parts` one after another
        Choice,      ///< one of `parts`; none: never fits
        Repeat,      ///< `parts[0]` from `least` to `most` times
        Call,        ///< the rule `rule`
        FreeText,    ///< bytes that do not contain `text`
        Graph,       ///< a way along `edges` from point 0 to point `points - 1`
    };
    struct Edge {
        std::uint32_t from;
        std::uint32_t to;
        ExpressionId part;
    };
    Kind kind;
    std::string text = {};
    std::vector<CodeRange> ranges = {};
    std::vector<ExpressionId> parts = {};
    std::uint32_t least = 0;
    std::uint32_t most = 0;  ///< kUnbounded: no limit
    RuleId rule = 0;
    std::uint32_t points = 0;
    std::vector<Edge> edges = {};
};
inline constexpr std::uint32_t kUnbounded = 0xFFFFFFFF;
inline constexpr std::uint32_t kMaxRepetitions = 20'000;
inline constexpr std::size_t kMaxExpressions = 500'000;
inline constexpr std::size_t kMaxRules = 20'000;

/// Rules of a grammar as they are read or made, before `compile`. Every maker of an expression throws
/// InvalidArgument where the grammar passes the limits above.
class RuleSet {
  public:
    ExpressionId bytes(std::string_view text);
    ExpressionId characters(std::vector<CodeRange> ranges);
    /// All characters but these.
    ExpressionId characters_except(std::vector<CodeRange> ranges);
    ExpressionId sequence(std::vector<ExpressionId> parts);
    ExpressionId choice(std::vector<ExpressionId> parts);
    ExpressionId repeat(ExpressionId part, std::uint32_t least, std::uint32_t most);
    ExpressionId optional(ExpressionId part) { return repeat(part, 0, 1); }
    ExpressionId call(RuleId rule);
    ExpressionId nothing() { return bytes({}); }
    ExpressionId free_text(std::string_view avoided);
    ExpressionId graph(std::uint32_t points, std::vector<Expression::Edge> edges);
    /// The token of this name, which has no text. The vocabulary must have it.
    ExpressionId token(std::string_view name);
    /// The token of this name where the vocabulary has it without text, or else the text.
    ExpressionId marker(std::string_view text);

    /// The rule of this name; declared if it is new.
    RuleId rule(std::string_view name);
    /// A new rule, whose name need not be unique.
    RuleId new_rule(std::string_view name);
    bool is_defined(RuleId rule) const { return bodies_[rule].has_value(); }
    void define(RuleId rule, ExpressionId body) { bodies_[rule] = body; }
    std::optional<RuleId> find(std::string_view name) const;

    const Expression& operator[](ExpressionId id) const { return expressions_[id]; }
    std::size_t rule_count() const { return bodies_.size(); }
    const std::string& name(RuleId rule) const { return names_[rule]; }
    ExpressionId body(RuleId rule) const { return *bodies_[rule]; }
    const std::vector<std::string>& token_names() const { return token_names_; }

  private:
    ExpressionId add(Expression expression);

    std::vector<Expression> expressions_;
    std::vector<std::string> names_;
    std::vector<std::optional<ExpressionId>> bodies_;
    std::unordered_map<std::string, RuleId> rules_by_name_;
    std::vector<std::string> token_names_;
};

/// Sorted, disjoint, and without surrogates, which UTF-8 does not have.
std::vector<CodeRange> normalised(std::vector<CodeRange> ranges);

}  // namespace coterie::grammar
