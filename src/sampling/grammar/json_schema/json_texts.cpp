#include "sampling/grammar/json_schema/json_texts.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/compile.h"
#include "tokenizer/utf8.h"

namespace coterie::grammar {
namespace {

constexpr std::uint32_t kMaxNumberDigits = 16;
constexpr std::size_t kMaxNameLength = 256;

/// What JSON strings must not hold as it is.
bool needs_escape(char32_t code) { return code < 0x20 || code == '"' || code == '\\'; }

std::string escaped(char32_t code) {
    constexpr std::pair<char32_t, const char*> kShort[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"},
                                                           {'\f', "\\f"}, {'\n', "\\n"},  {'\r', "\\r"},
                                                           {'\t', "\\t"}};
    for (const auto& [character, text] : kShort) {
        if (character == code) return text;
    }
    return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
}

std::u32string code_points(std::string_view text) {
    std::u32string codes;
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Step step = utf8_step(text, at);
        COTERIE_CHECK(step.kind == Utf8Step::Kind::Character);
        codes += utf8_code_point(text.substr(at, step.bytes));
        at += step.bytes;
    }
    return codes;
}

}  // namespace

/// A rule of the name, which no rule of a schema has.
template <typename Make>
ExpressionId JsonTexts::shared(std::string_view name, Make make) {
    const RuleId rule = rules_.rule(fmt::format("JSON {}", name));
    const ExpressionId call = rules_.call(rule);
    if (!rules_.is_defined(rule)) {
        rules_.define(rule, rules_.nothing());  // recursive rules must find it defined
        rules_.define(rule, make());
    }
    return call;
}

ExpressionId JsonTexts::space() {
    return shared("space", [&] {
        const ExpressionId blanks = rules_.repeat(rules_.characters({{' ', ' '}, {'\t', '\t'}}), 0, 20);
        return rules_.optional(
            rules_.choice({rules_.bytes(" "), rules_.sequence({rules_.bytes("\n"), blanks})}));
    });
}

ExpressionId JsonTexts::any_character() {
    const auto hex = [&](std::uint32_t count) {
        return rules_.repeat(rules_.characters({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}), count, count);
    };
    const ExpressionId d = rules_.characters({{'d', 'd'}, {'D', 'D'}});
    const ExpressionId plain = rules_.sequence(
        {rules_.characters({{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}}), hex(3)});
    const ExpressionId below_surrogates = rules_.sequence({d, rules_.characters({{'0', '7'}}), hex(2)});
    const ExpressionId pair =
        rules_.sequence({d, rules_.characters({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hex(2),
                         rules_.bytes("\\u"), d, rules_.characters({{'c', 'f'}, {'C', 'F'}}), hex(2)});
    const ExpressionId number =
        rules_.sequence({rules_.bytes("u"), rules_.choice({plain, below_surrogates, pair})});
    const ExpressionId letter = rules_.characters(
        {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
    return rules_.choice({rules_.characters_except({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}),
                          rules_.sequence({rules_.bytes("\\"), rules_.choice({letter, number})})});
}

ExpressionId JsonTexts::any_string() {
    return shared("string", [&] {
        return rules_.sequence(
            {rules_.bytes("\""), rules_.repeat(any_character(), 0, kUnbounded), rules_.bytes("\"")});
    });
}

ExpressionId JsonTexts::character(std::vector<CodeRange> ranges) {
    ranges = normalised(std::move(ranges));
    std::vector<ExpressionId> ways;
    std::vector<CodeRange> plain;
    for (const CodeRange& range : ranges) {
        char32_t start = range.first;
        for (char32_t code = range.first; code <= std::min<char32_t>(range.last, '\\'); ++code) {
            if (!needs_escape(code)) continue;
            if (start < code) plain.push_back({start, code - 1});
            ways.push_back(rules_.bytes(escaped(code)));
            start = code + 1;
        }
        if (start <= range.last) plain.push_back({start, range.last});
    }
    ways.push_back(rules_.characters(std::move(plain)));
    return rules_.choice(std::move(ways));
}

ExpressionId JsonTexts::any_integer() {
    return shared("integer", [&] {
        const ExpressionId digits = rules_.repeat(rules_.characters({{'0', '9'}}), 0, kMaxNumberDigits - 1);
        return rules_.sequence(
            {rules_.optional(rules_.bytes("-")),
             rules_.choice({rules_.bytes("0"), rules_.sequence({rules_.characters({{'1', '9'}}), digits})})});
    });
}

ExpressionId JsonTexts::any_number() {
    return shared("number", [&] {
        const ExpressionId digit = rules_.characters({{'0', '9'}});
        const ExpressionId fraction =
            rules_.sequence({rules_.bytes("."), rules_.repeat(digit, 1, kMaxNumberDigits)});
        const ExpressionId sign = rules_.optional(rules_.characters({{'+', '+'}, {'-', '-'}}));
        const ExpressionId exponent =
            rules_.sequence({rules_.characters({{'e', 'e'}, {'E', 'E'}}), sign, rules_.repeat(digit, 1, 2)});
        return rules_.sequence({any_integer(), rules_.optional(fraction), rules_.optional(exponent)});
    });
}

ExpressionId JsonTexts::any_value() {
    return shared("value", [&] {
        return rules_.choice({any_object(), any_array(), any_string(), any_number(), rules_.bytes("true"),
                              rules_.bytes("false"), rules_.bytes("null")});
    });
}

ExpressionId JsonTexts::any_object() {
    return shared("object", [&] { return object(rules_.optional(list(member(any_string(), any_value())))); });
}

ExpressionId JsonTexts::any_array() {
    return shared("array", [&] { return array(rules_.optional(list(any_value()))); });
}

ExpressionId JsonTexts::list(ExpressionId item) {
    return rules_.sequence({item, rules_.repeat(rules_.sequence({comma(), item}), 0, kUnbounded)});
}

ExpressionId JsonTexts::comma() { return rules_.sequence({rules_.bytes(","), space()}); }

ExpressionId JsonTexts::member(ExpressionId name, ExpressionId value) {
    return rules_.sequence({name, rules_.bytes(":"), rules_.optional(rules_.bytes(" ")), value});
}

ExpressionId JsonTexts::object(ExpressionId members) {
    return rules_.sequence({rules_.bytes("{"), space(), members, space(), rules_.bytes("}")});
}

ExpressionId JsonTexts::array(ExpressionId elements) {
    return rules_.sequence({rules_.bytes("["), space(), elements, space(), rules_.bytes("]")});
}

ExpressionId JsonTexts::name_except(std::vector<std::string> taken) {
    std::vector<std::u32string> names;
    for (const std::string& name : taken) {
        names.push_back(code_points(name));
        if (names.back().size() > kMaxNameLength) {
            fail(ErrorCode::InvalidArgument, "a property's name has more than {} characters", kMaxNameLength);
        }
    }
    return rules_.sequence({rules_.bytes("\""), name_rest(std::move(names), 0), rules_.bytes("\"")});
}

/// What may follow `depth` characters that all of `taken` have in common: a character that none has there
/// and then anything; one that some have and then what those leave; or the end, if no name ends here.
ExpressionId JsonTexts::name_rest(std::vector<std::u32string> taken, std::size_t depth) {
    const std::vector<CodeRange> forbidden = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    std::map<char32_t, std::vector<std::u32string>> by_next;
    bool may_end = true;
    for (std::u32string& name : taken) {
        if (name.size() == depth) {
            may_end = false;
        } else {
            by_next[name[depth]].push_back(std::move(name));
        }
    }
    std::vector<CodeRange> others = forbidden;
    std::vector<ExpressionId> ways;
    for (auto& [next, names] : by_next) {
        if (needs_escape(next)) continue;  // such a name cannot be written without escapes
        others.push_back({next, next});
        const ExpressionId rest = name_rest(std::move(names), depth + 1);
        ways.push_back(rules_.sequence({rules_.characters({{next, next}}), rest}));
    }
    const ExpressionId anything = rules_.repeat(rules_.characters_except(forbidden), 0, kUnbounded);
    ways.push_back(rules_.sequence({rules_.characters_except(others), anything}));
    if (may_end) ways.push_back(rules_.nothing());
    return rules_.choice(std::move(ways));
}

}  // namespace coterie::grammar

namespace coterie {

GrammarPointer grammar_of_json_objects(const GrammarLeadIn& lead_in) {
    grammar::RuleSet rules;
    grammar::JsonTexts json(rules);
    const grammar::RuleId root = rules.new_rule("root");
    rules.define(root, json.any_object());
    return grammar::compile(rules, root, lead_in);
}

}  // namespace coterie
