#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// Reads GBNF (docs/grammars.md) into rules; recursive descent over the notation's own grammar:
///
///     rule     = name "::=" choice end-of-line        choice = sequence ("|" sequence)*
///     sequence = (item ("*" | "+" | "?" | "{" m ("," n?)? "}")?)*
///     item     = literal | class | "." | name | "<" token ">" | "(" choice ")"
class GbnfParser {
  public:
    GbnfParser(std::string_view text, RuleSet& rules) : text_(text), rules_(rules) {}

    /// Throws InvalidArgument, naming line and column.
    void parse();

    static constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
    static constexpr int kMaxDepth = 100;

  private:
    /// Whether a line's end ends what is being read: so at a rule's top level, not within parentheses.
    enum class Lines { End, Space };

    void parse_rule();
    ExpressionId parse_choice(Lines lines);
    ExpressionId parse_sequence(Lines lines);
    bool parse_item(ExpressionId& item);
    ExpressionId parse_repetition(ExpressionId item);
    ExpressionId parse_literal();
    ExpressionId parse_class();
    ExpressionId parse_token();
    ExpressionId parse_group();
    ExpressionId parse_reference();
    std::string parse_name();
    std::uint32_t parse_count();
    char32_t parse_character();
    char32_t parse_escape();
    char32_t parse_hex(int digits);
    void skip_space(Lines lines);
    bool alternative_follows();
    void check_all_defined();

    bool at_end() const { return position_ == text_.size(); }
    char peek() const { return at_end() ? '\0' : text_[position_]; }
    bool take(std::string_view expected);
    [[noreturn]] void refuse(std::size_t position, std::string_view problem) const;

    std::string_view text_;
    RuleSet& rules_;
    std::size_t position_ = 0;
    int depth_ = 0;
    std::vector<std::size_t> first_uses_;  ///< by rule: where it is named first
};

}  // namespace coterie::grammar
