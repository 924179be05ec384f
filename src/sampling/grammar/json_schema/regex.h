#pragma once

#include <string_view>
#include <vector>

#include "sampling/grammar/json_schema/json_texts.h"

namespace coterie::grammar {

/// Turns a schema's `pattern` into the inside of a JSON string. The notation is ECMAScript's, as far as it is
/// regular: characters, classes (\d \w \s and their opposites too), `.`, groups, alternatives, `* + ? {m,n}`
/// (lazy ones are the same), and `^` and `$` at the ends of an alternative of the whole pattern.
class RegexParser {
  public:
    RegexParser(std::string_view pattern, JsonTexts& json) : pattern_(pattern), json_(json) {}

    /// Throws InvalidArgument that quotes the pattern's place, for look-around, back references, anchors
    /// elsewhere and what is no pattern at all.
    ExpressionId parse();

    static constexpr int kMaxDepth = 50;
    static constexpr std::size_t kMaxPatternBytes = 4096;

  private:
    enum class Level { Top, Group };

    ExpressionId parse_choice(Level level);
    ExpressionId parse_sequence(Level level);
    ExpressionId parse_atom();
    ExpressionId parse_group();
    ExpressionId parse_class();
    ExpressionId parse_quantifier(ExpressionId atom);
    void parse_counts(std::uint32_t& least, std::uint32_t& most);
    std::uint32_t parse_count();
    /// One character or a class such as \d; which of both is the count of characters.
    std::vector<CodeRange> parse_class_item();
    std::vector<CodeRange> parse_escape();
    char32_t parse_character();
    char32_t parse_hex(int digits);

    bool at_end() const { return position_ == pattern_.size(); }
    char peek() const { return at_end() ? '\0' : pattern_[position_]; }
    bool take(std::string_view expected);
    [[noreturn]] void refuse(std::string_view problem) const;

    std::string_view pattern_;
    JsonTexts& json_;
    std::size_t position_ = 0;
    int depth_ = 0;
};

}  // namespace coterie::grammar
