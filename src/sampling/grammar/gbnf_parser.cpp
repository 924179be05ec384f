#include "sampling/grammar/gbnf_parser.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/compile.h"
#include "tokenizer/utf8.h"

namespace coterie::grammar {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

}  // namespace

void GbnfParser::parse() {
    if (text_.size() > kMaxTextBytes) {
        fail(ErrorCode::InvalidArgument, "the grammar has {} bytes; at most {} are supported", text_.size(),
             kMaxTextBytes);
    }
    skip_space(Lines::Space);
    while (!at_end()) {
        parse_rule();
        skip_space(Lines::Space);
    }
    check_all_defined();
}

void GbnfParser::parse_rule() {
    const std::size_t start = position_;
    const std::string name = parse_name();
    const RuleId rule = rules_.rule(name);
    first_uses_.resize(std::max<std::size_t>(first_uses_.size(), rule + 1), start);
    if (rules_.is_defined(rule)) refuse(start, "this rule is defined a second time");
    skip_space(Lines::End);
    if (!take("::=")) refuse(position_, "'::=' must follow a rule's name");
    skip_space(Lines::Space);
    rules_.define(rule, parse_choice(Lines::End));
    if (!at_end() && peek() != '\n' && peek() != '\r') refuse(position_, "unexpected character");
}

ExpressionId GbnfParser::parse_choice(Lines lines) {
    std::vector<ExpressionId> alternatives = {parse_sequence(lines)};
    while (peek() == '|' || (lines == Lines::End && alternative_follows())) {
        take("|");
        skip_space(Lines::Space);
        alternatives.push_back(parse_sequence(lines));
    }
    return rules_.choice(std::move(alternatives));
}

ExpressionId GbnfParser::parse_sequence(Lines lines) {
    std::vector<ExpressionId> items;
    for (ExpressionId item = 0; parse_item(item);) {
        skip_space(lines);
        items.push_back(parse_repetition(item));
        skip_space(lines);
    }
    return items.empty() ? rules_.nothing() : rules_.sequence(std::move(items));
}

bool GbnfParser::parse_item(ExpressionId& item) {
    const char c = peek();
    if (c == '"') {
        item = parse_literal();
    } else if (c == '[') {
        item = parse_class();
    } else if (c == '<') {
        item = parse_token();
    } else if (c == '(') {
        item = parse_group();
    } else if (c == '.') {
        ++position_;
        item = rules_.characters_except({});
    } else if (is_name_character(c)) {
        item = parse_reference();
    } else {
        return false;
    }
    return true;
}

/// Any number of repetition marks, each around what stands before it.
ExpressionId GbnfParser::parse_repetition(ExpressionId item) {
    for (int marks = 0;; ++marks) {
        if (marks == kMaxDepth) refuse(position_, "too many repetition marks in a row");
        const std::size_t start = position_;
        std::uint32_t least = 0;
        std::uint32_t most = kUnbounded;
        if (take("*")) {
        } else if (take("+")) {
            least = 1;
        } else if (take("?")) {
            most = 1;
        } else if (take("{")) {
            skip_space(Lines::End);
            least = most = parse_count();
            skip_space(Lines::End);
            if (take(",")) {
                skip_space(Lines::End);
                most = peek() == '}' ? kUnbounded : parse_count();
                skip_space(Lines::End);
            }
            if (!take("}")) refuse(position_, "'}' must close a repetition");
            if (least > most) refuse(start, "a repetition's first number is greater than its second");
        } else {
            return item;
        }
        item = rules_.repeat(item, least, most);
        skip_space(Lines::End);
    }
}

ExpressionId GbnfParser::parse_literal() {
    const std::size_t start = position_++;
    std::string bytes;
    while (peek() != '"') {
        if (at_end() || peek() == '\n') refuse(start, "this text in quotes has no end on its line");
        append_utf8(bytes, parse_character());
    }
    ++position_;
    return rules_.bytes(bytes);
}

ExpressionId GbnfParser::parse_class() {
    const std::size_t start = position_++;
    const bool negated = take("^");
    std::vector<CodeRange> ranges;
    while (peek() != ']') {
        if (at_end() || peek() == '\n') refuse(start, "this class of characters has no ']' on its line");
        const std::size_t range_start = position_;
        const char32_t first = parse_character();
        char32_t last = first;
        if (peek() == '-' && position_ + 1 < text_.size() && text_[position_ + 1] != ']') {
            ++position_;
            last = parse_character();
        }
        if (last < first) refuse(range_start, "this range ends before it begins");
        ranges.push_back({first, last});
    }
    ++position_;
    return negated ? rules_.characters_except(std::move(ranges)) : rules_.characters(std::move(ranges));
}

ExpressionId GbnfParser::parse_token() {
    const std::size_t start = position_++;
    if (peek() == '[')
        refuse(start, "tokens are called by name, like <|end|>; numbers differ from model to model");
    const std::size_t end = text_.find('>', position_);
    const std::string_view name =
        end == std::string_view::npos ? "" : text_.substr(position_, end - position_);
    if (name.empty() || name.find('\n') != std::string_view::npos)
        refuse(start, "'<' begins a token's name, and its '>' is missing");
    position_ = end + 1;
    return rules_.token(text_.substr(start, position_ - start));
}

ExpressionId GbnfParser::parse_group() {
    const std::size_t start = position_++;
    if (++depth_ > kMaxDepth) refuse(start, "parentheses nest too deep");
    skip_space(Lines::Space);
    const ExpressionId inside = parse_choice(Lines::Space);
    --depth_;
    if (!take(")")) refuse(at_end() ? start : position_, "')' is missing");
    return inside;
}

ExpressionId GbnfParser::parse_reference() {
    const std::size_t start = position_;
    const RuleId rule = rules_.rule(parse_name());
    first_uses_.resize(std::max<std::size_t>(first_uses_.size(), rule + 1), start);
    return rules_.call(rule);
}

std::string GbnfParser::parse_name() {
    const std::size_t start = position_;
    while (is_name_character(peek())) ++position_;
    if (position_ == start) refuse(start, "a rule's name must stand here");
    return std::string(text_.substr(start, position_ - start));
}

std::uint32_t GbnfParser::parse_count() {
    const std::size_t start = position_;
    std::uint32_t count = 0;
    while (is_digit(peek())) {
        count = count * 10 + static_cast<std::uint32_t>(peek() - '0');
        if (count > kMaxRepetitions) {
            refuse(start, fmt::format("at most {} repetitions are supported", kMaxRepetitions));
        }
        ++position_;
    }
    if (position_ == start) refuse(start, "a number must stand here");
    return count;
}

char32_t GbnfParser::parse_character() {
    if (peek() == '\\') return parse_escape();
    const Utf8Step step = utf8_step(text_, position_);
    if (step.kind != Utf8Step::Kind::Character) refuse(position_, "this is not UTF-8");
    position_ += step.bytes;
    return utf8_code_point(text_.substr(position_ - step.bytes, step.bytes));
}

char32_t GbnfParser::parse_escape() {
    const std::size_t start = position_++;
    const char kind = peek();
    if (!at_end()) ++position_;
    switch (kind) {
        case 'x':
            return parse_hex(2);
        case 'u':
            return parse_hex(4);
        case 'U':
            return parse_hex(8);
        case 't':
            return '\t';
        case 'r':
            return '\r';
        case 'n':
            return '\n';
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^':
            return static_cast<char32_t>(kind);
        default:
            refuse(
                start,
                "unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
    }
}

char32_t GbnfParser::parse_hex(int digits) {
    const std::size_t start = position_;
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++position_) {
        const char c = peek();
        const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_digit(c) && !is_letter)
            refuse(start, fmt::format("{} hexadecimal digits must stand here", digits));
        code = code * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code > kLastCodePoint || (code >= 0xD800 && code <= 0xDFFF))
        refuse(start, "this number is no Unicode character");
    return code;
}

void GbnfParser::skip_space(Lines lines) {
    while (!at_end()) {
        const char c = peek();
        const bool is_line_end = c == '\n' || c == '\r';
        if (c == '#') {
            while (!at_end() && peek() != '\n') ++position_;
        } else if (c == ' ' || c == '\t' || (is_line_end && lines == Lines::Space)) {
            ++position_;
        } else {
            return;
        }
    }
}

/// A line that begins with '|' goes on with the rule above it.
bool GbnfParser::alternative_follows() {
    const std::size_t here = position_;
    skip_space(Lines::Space);
    if (peek() == '|') return true;
    position_ = here;
    return false;
}

void GbnfParser::check_all_defined() {
    for (RuleId rule = 0; rule < rules_.rule_count(); ++rule) {
        if (!rules_.is_defined(rule))
            refuse(first_uses_[rule], fmt::format("the rule '{}' is not defined", rules_.name(rule)));
    }
}

bool GbnfParser::take(std::string_view expected) {
    if (!text_.substr(position_).starts_with(expected)) return false;
    position_ += expected.size();
    return true;
}

void GbnfParser::refuse(std::size_t position, std::string_view problem) const {
    const std::string_view before = text_.substr(0, position);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    fail(ErrorCode::InvalidArgument, "grammar, line {}, column {}: {}", line, position - line_start + 1,
         problem);
}

}  // namespace coterie::grammar

namespace coterie {

GrammarPointer parse_gbnf(std::string_view text, const GrammarLeadIn& lead_in) {
    grammar::RuleSet rules;
    grammar::GbnfParser(text, rules).parse();
    const auto root = rules.find("root");
    if (!root)
        fail(ErrorCode::InvalidArgument, "grammar: the rule 'root' is missing; an answer begins with it");
    return grammar::compile(rules, *root, lead_in);
}

}  // namespace coterie
