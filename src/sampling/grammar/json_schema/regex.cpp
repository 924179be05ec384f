#include "sampling/grammar/json_schema/regex.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace coterie::grammar {
namespace {

using Ranges = std::vector<CodeRange>;

const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                       {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                       {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
const Ranges kEverything = {{0, kLastCodePoint}};

Ranges except(Ranges ranges) {
    Ranges rest;
    char32_t next = 0;
    for (const CodeRange& range : normalised(std::move(ranges))) {
        if (range.first > next) rest.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    rest.push_back({next, kLastCodePoint});
    return rest;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

ExpressionId RegexParser::parse() {
    if (pattern_.size() > kMaxPatternBytes) refuse("it is longer than 4096 bytes");
    const ExpressionId whole = parse_choice(Level::Top);
    if (!at_end()) refuse("unmatched ')'");
    return whole;
}

ExpressionId RegexParser::parse_choice(Level level) {
    std::vector<ExpressionId> alternatives = {parse_sequence(level)};
    while (take("|")) alternatives.push_back(parse_sequence(level));
    return json_.rules().choice(std::move(alternatives));
}

/// At the top, what is not anchored may have anything around it.
ExpressionId RegexParser::parse_sequence(Level level) {
    RuleSet& rules = json_.rules();
    std::vector<ExpressionId> items;
    const auto anything = [&] { return rules.repeat(json_.character(kEverything), 0, kUnbounded); };
    if (level == Level::Top && !take("^")) items.push_back(anything());
    bool anchored = false;
    while (!at_end() && peek() != '|' && peek() != ')') {
        if (level == Level::Top && take("$")) {
            if (!at_end() && peek() != '|') refuse("'$' is supported at the end only");
            anchored = true;
        } else {
            items.push_back(parse_quantifier(parse_atom()));
        }
    }
    if (level == Level::Top && !anchored) items.push_back(anything());
    return items.empty() ? rules.nothing() : rules.sequence(std::move(items));
}

ExpressionId RegexParser::parse_atom() {
    switch (peek()) {
        case '(':
            return parse_group();
        case '[':
            return parse_class();
        case '.':
            ++position_;
            return json_.character(except(kLineEnds));
        case '\\':
            ++position_;
            return json_.character(parse_escape());
        case '*':
        case '+':
        case '?':
        case '{':
            refuse("nothing stands before this quantifier");
        case '^':
        case '$':
            refuse("'^' and '$' are supported at the ends of the whole pattern only");
        case ']':
        case '}':
            refuse("unmatched bracket");
        default: {
            const char32_t code = parse_character();
            return json_.character({{code, code}});
        }
    }
}

ExpressionId RegexParser::parse_group() {
    ++position_;
    if (++depth_ > kMaxDepth) refuse("groups nest too deep");
    if (take("?")) {
        const bool is_named =
            peek() == '<' && pattern_.substr(position_, 2) != "<=" && pattern_.substr(position_, 2) != "<!";
        if (is_named) {
            const std::size_t end = pattern_.find('>', position_);
            if (end == std::string_view::npos) refuse("a group's name has no end");
            position_ = end + 1;
        } else if (!take(":")) {
            refuse("look-around and other special groups are not supported");
        }
    }
    const ExpressionId inside = parse_choice(Level::Group);
    if (!take(")")) refuse("')' is missing");
    --depth_;
    return inside;
}

ExpressionId RegexParser::parse_class() {
    ++position_;
    const bool negated = take("^");
    Ranges ranges;
    while (peek() != ']') {
        if (at_end()) refuse("']' is missing");
        Ranges item = parse_class_item();
        const bool is_character = item.size() == 1 && item[0].first == item[0].last;
        if (peek() == '-' && position_ + 1 < pattern_.size() && pattern_[position_ + 1] != ']') {
            ++position_;
            const Ranges last = parse_class_item();
            if (!is_character || last.size() != 1 || last[0].first != last[0].last)
                refuse("a range needs a character at both ends");
            if (last[0].first < item[0].first) refuse("a range ends before it begins");
            item[0].last = last[0].last;
        }
        ranges.insert(ranges.end(), item.begin(), item.end());
    }
    ++position_;
    return json_.character(negated ? except(std::move(ranges)) : std::move(ranges));
}

std::vector<CodeRange> RegexParser::parse_class_item() {
    if (take("\\")) {
        if (take("b")) return {{'\b', '\b'}};
        return parse_escape();
    }
    const char32_t code = parse_character();
    return {{code, code}};
}

std::vector<CodeRange> RegexParser::parse_escape() {
    if (at_end()) refuse("'\\' stands at its end");
    const char kind = pattern_[position_++];
    const auto one = [](char32_t code) { return Ranges{{code, code}}; };
    switch (kind) {
        case 'd':
            return kDigits;
        case 'D':
            return except(kDigits);
        case 'w':
            return kWord;
        case 'W':
            return except(kWord);
        case 's':
            return kSpace;
        case 'S':
            return except(kSpace);
        case 'n':
            return one('\n');
        case 'r':
            return one('\r');
        case 't':
            return one('\t');
        case 'f':
            return one('\f');
        case 'v':
            return one('\v');
        case 'x':
            return one(parse_hex(2));
        case 'u':
            return one(parse_hex(4));
        default:
            break;
    }
    if (kind == '0' && !is_digit(peek())) return one(0);
    if (std::string_view("^$\\.*+?()[]{}|/-\"'#&%,:;<=>@_`~! ").find(kind) != std::string_view::npos)
        return one(static_cast<char32_t>(kind));
    refuse("this escape is not supported");
}

char32_t RegexParser::parse_character() {
    const Utf8Step step = utf8_step(pattern_, position_);
    if (step.kind != Utf8Step::Kind::Character) refuse("it is not UTF-8");
    position_ += step.bytes;
    return utf8_code_point(pattern_.substr(position_ - step.bytes, step.bytes));
}

char32_t RegexParser::parse_hex(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++position_) {
        const char c = static_cast<char>(peek() | 0x20);
        if (is_digit(peek())) {
            code = code * 16 + static_cast<char32_t>(peek() - '0');
        } else if (c >= 'a' && c <= 'f') {
            code = code * 16 + static_cast<char32_t>(c - 'a' + 10);
        } else {
            refuse("hexadecimal digits are missing");
        }
    }
    if (code >= 0xD800 && code <= 0xDFFF) refuse("halves of surrogate pairs are not supported");
    return code;
}

ExpressionId RegexParser::parse_quantifier(ExpressionId atom) {
    std::uint32_t least = 0;
    std::uint32_t most = kUnbounded;
    if (take("*")) {
    } else if (take("+")) {
        least = 1;
    } else if (take("?")) {
        most = 1;
    } else if (take("{")) {
        parse_counts(least, most);
    } else {
        return atom;
    }
    take("?");  // lazy: the same language
    if (const std::string_view marks = "*+?{"; !at_end() && marks.find(peek()) != std::string_view::npos)
        refuse("a quantifier follows a quantifier");
    return json_.rules().repeat(atom, least, most);
}

void RegexParser::parse_counts(std::uint32_t& least, std::uint32_t& most) {
    least = most = parse_count();
    if (take(",")) most = peek() == '}' ? kUnbounded : parse_count();
    if (!take("}")) refuse("'}' is missing behind a number of repetitions");
    if (least > most) refuse("a repetition's first number is greater than its second");
}

std::uint32_t RegexParser::parse_count() {
    if (!is_digit(peek())) refuse("a number of repetitions is missing");
    std::uint32_t count = 0;
    for (; is_digit(peek()); ++position_) {
        count = count * 10 + static_cast<std::uint32_t>(peek() - '0');
        if (count > kMaxRepetitions) refuse("more than 20000 repetitions are not supported");
    }
    return count;
}

bool RegexParser::take(std::string_view expected) {
    if (!pattern_.substr(position_).starts_with(expected)) return false;
    position_ += expected.size();
    return true;
}

void RegexParser::refuse(std::string_view problem) const {
    std::size_t shown_bytes = std::min<std::size_t>(pattern_.size(), 60);
    while (shown_bytes < pattern_.size() && (pattern_[shown_bytes] & 0xC0) == 0x80) --shown_bytes;
    const std::string_view shown = pattern_.substr(0, shown_bytes);
    fail(ErrorCode::InvalidArgument, "pattern '{}'{}, character {}: {}", shown,
         shown.size() < pattern_.size() ? "..." : "", position_ + 1, problem);
}

}  // namespace coterie::grammar
