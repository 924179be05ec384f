// What a schema says of one type of value: objects, arrays, strings and numbers.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/json_schema/number_ranges.h"
#include "sampling/grammar/json_schema/regex.h"
#include "sampling/grammar/json_schema/schema_compiler.h"
#include "sampling/grammar/json_schema/string_formats.h"

namespace coterie::grammar {
namespace {

std::vector<std::string> required_names(const Json& schema, const Place& place) {
    std::vector<std::string> names;
    if (!schema.contains("required")) return names;
    const Place here = place / "required";
    if (!schema.at("required").is_array()) refuse(here, "it must be an array of strings");
    for (const Json& name : schema.at("required")) {
        if (!name.is_string()) refuse(here, "it must be an array of strings");
        names.push_back(name.get<std::string>());
    }
    return names;
}

/// A count such as `minItems`.
std::uint32_t count_of(const Json& schema, const char* keyword, std::uint32_t otherwise, const Place& place) {
    if (!schema.contains(keyword)) return otherwise;
    const Json& value = schema.at(keyword);
    const bool is_whole = value.is_number_unsigned() ||
                          (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()));
    if (!is_whole || value.get<double>() < 0) refuse(place / keyword, "it must be a whole number, 0 or more");
    if (value.get<double>() > kMaxRepetitions)
        refuse(place / keyword, fmt::format("at most {} are supported", kMaxRepetitions));
    return value.get<std::uint32_t>();
}

std::optional<Bound> bound_of(const Json& schema, const char* keyword, bool inclusive, const Place& place) {
    if (!schema.contains(keyword)) return std::nullopt;
    const Json& value = schema.at(keyword);
    if (!value.is_number()) refuse(place / keyword, "it must be a number");
    const auto decimal = Decimal::parse(value.dump());
    if (!decimal) refuse(place / keyword, "numbers of more than 60 digits are not supported");
    return Bound{*decimal, inclusive};
}

bool is_below(const Decimal& a, const Decimal& b) {
    if (a.negative != b.negative) return a.negative;
    const auto magnitude_below = [](const Decimal& x, const Decimal& y) {
        if (x.whole.size() != y.whole.size()) return x.whole.size() < y.whole.size();
        return x.whole != y.whole ? x.whole < y.whole : x.fraction < y.fraction;
    };
    return a.negative ? magnitude_below(b, a) : magnitude_below(a, b);
}

enum class Side { Lower, Upper };

/// The tighter of `minimum` and `exclusiveMinimum`, or of their opposites.
std::optional<Bound> tightest(const Json& schema, Side side, const Place& place) {
    const bool lower = side == Side::Lower;
    const auto a = bound_of(schema, lower ? "minimum" : "maximum", true, place);
    const auto b = bound_of(schema, lower ? "exclusiveMinimum" : "exclusiveMaximum", false, place);
    if (!a || !b) return a ? a : b;
    const bool a_is_tighter = lower ? is_below(b->value, a->value) : is_below(a->value, b->value);
    return a_is_tighter ? a : b;
}

/// The outermost integer within a bound.
std::optional<std::int64_t> integer_bound(const std::optional<Bound>& bound, Side side, const Place& place) {
    if (!bound) return std::nullopt;
    const Decimal& value = bound->value;
    if (value.whole.size() > 18) refuse(place, "bounds of integers may have 18 digits at most");
    std::int64_t whole = std::stoll(value.whole);
    const bool is_whole = value.fraction.empty();
    if (value.negative) whole = -whole;
    const std::int64_t inwards = side == Side::Lower ? 1 : -1;
    if (is_whole) return bound->inclusive ? whole : whole + inwards;
    // The digits before the point lie between zero and the bound.
    const bool lies_inside = value.negative == (side == Side::Lower);
    return lies_inside ? whole : whole + inwards;
}

}  // namespace

ExpressionId SchemaCompiler::object(const Json& schema, const Place& place) {
    Json properties = schema.contains("properties") ? schema.at("properties") : Json::object();
    if (!properties.is_object()) refuse(place / "properties", "it must be an object");
    const std::vector<std::string> required = required_names(schema, place);
    const Json others =
        schema.contains("additionalProperties") ? schema.at("additionalProperties") : Json(true);
    // A list without a name is a list, too: of no properties, unless others are spoken of.
    const bool is_open = schema.contains("additionalProperties") || !schema.contains("properties");
    if (is_open && properties.empty() && required.empty() && others == true) return json_.any_object();
    for (const std::string& name : required) {
        if (!properties.contains(name)) properties[name] = others;
    }
    std::optional<ExpressionId> other_values;
    if (schema.contains("additionalProperties") && others != false)
        other_values = this->schema(others, place / "additionalProperties");
    return json_.object(members(properties, required, other_values, place));
}

/// Points 2i (nothing written yet) and 2i + 1 (something was) stand before property i: each is written, with
/// a comma where something was, or passed over if it may be absent. Others follow behind.
ExpressionId SchemaCompiler::members(const Json& properties, const std::vector<std::string>& required,
                                     std::optional<ExpressionId> others, const Place& place) {
    const std::set<std::string> needed(required.begin(), required.end());
    const auto count = static_cast<std::uint32_t>(properties.size());
    const std::uint32_t end = 3 * count + 2;
    std::vector<Expression::Edge> edges;
    std::vector<std::string> names;
    std::uint32_t i = 0;
    for (const auto& [name, property] : properties.items()) {
        const std::uint32_t none = 2 * i;
        const std::uint32_t some = none + 1;
        const std::uint32_t now = 2 * count + 2 + i;  // the property itself
        const ExpressionId text = rules_.bytes(Json(name).dump());
        const ExpressionId member = json_.member(text, this->schema(property, place / "properties" / name));
        edges.push_back({none, now, rules_.nothing()});
        edges.push_back({some, now, json_.comma()});
        edges.push_back({now, some + 2, member});
        if (needed.count(name) == 0) {
            edges.push_back({none, none + 2, rules_.nothing()});
            edges.push_back({some, some + 2, rules_.nothing()});
        }
        names.push_back(name);
        ++i;
    }
    const std::uint32_t none = 2 * count;
    edges.push_back({none, end, rules_.nothing()});
    edges.push_back({none + 1, end, rules_.nothing()});
    if (others) {
        const ExpressionId other = json_.member(json_.name_except(names), *others);
        edges.push_back({none, none + 1, other});
        edges.push_back({none + 1, none + 1, rules_.sequence({json_.comma(), other})});
    }
    return rules_.graph(end + 1, std::move(edges));
}

ExpressionId SchemaCompiler::array(const Json& schema, const Place& place) {
    const bool has_old_form = schema.contains("items") && schema.at("items").is_array();
    const char* const first_keyword = has_old_form ? "items" : "prefixItems";
    const char* const rest_keyword = has_old_form ? "additionalItems" : "items";
    std::vector<ExpressionId> first;
    if (schema.contains(first_keyword)) {
        const Json& schemas = schema.at(first_keyword);
        if (!schemas.is_array()) refuse(place / first_keyword, "it must be an array");
        for (std::size_t i = 0; i < schemas.size(); ++i)
            first.push_back(this->schema(schemas[i], place / first_keyword / std::to_string(i)));
    }
    const Json rest = schema.contains(rest_keyword) ? schema.at(rest_keyword) : Json(true);
    const std::uint32_t least = count_of(schema, "minItems", 0, place);
    const std::uint32_t most = count_of(schema, "maxItems", kUnbounded, place);
    if (least > most) refuse(place / "minItems", "it is greater than 'maxItems'");
    std::optional<ExpressionId> others;
    if (rest != false) others = this->schema(rest, place / rest_keyword);
    return json_.array(elements(first, others, least, most));
}

/// Point i stands behind i elements, as far as each has its own schema; then the others repeat.
ExpressionId SchemaCompiler::elements(const std::vector<ExpressionId>& first,
                                      std::optional<ExpressionId> others, std::uint32_t least,
                                      std::uint32_t most) {
    std::vector<ExpressionId> own = first;
    if (own.empty() && others && most > 0) own.push_back(*others);  // the one without a comma before it
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(own.size(), most));
    const std::uint32_t end = count + 1;
    std::vector<Expression::Edge> edges;
    for (std::uint32_t i = 0; i <= count; ++i) {
        if (i >= least && (i < count || i == most || !others)) edges.push_back({i, end, rules_.nothing()});
        if (i == count) break;
        edges.push_back({i, i + 1, i == 0 ? own[0] : rules_.sequence({json_.comma(), own[i]})});
    }
    if (others && count < most && !own.empty()) {
        const std::uint32_t missing = least > count ? least - count : 0;
        const std::uint32_t allowed = most == kUnbounded ? kUnbounded : most - count;
        edges.push_back(
            {count, end, rules_.repeat(rules_.sequence({json_.comma(), *others}), missing, allowed)});
    }
    return rules_.graph(end + 1, std::move(edges));
}

ExpressionId SchemaCompiler::string(const Json& schema, const Place& place) {
    const bool has_length = schema.contains("minLength") || schema.contains("maxLength");
    const bool has_pattern = schema.contains("pattern");
    // By the standard a format is an annotation: a pattern beside it says the same more exactly.
    const bool has_format = schema.contains("format") && !has_pattern;
    if (has_length + has_pattern + has_format > 1) {
        refuse(place / (has_pattern ? "pattern" : "format"),
               "only one of 'pattern', 'format' and a length is supported on a string");
    }
    if (has_length) {
        const std::uint32_t least = count_of(schema, "minLength", 0, place);
        const std::uint32_t most = count_of(schema, "maxLength", kUnbounded, place);
        if (least > most) refuse(place / "minLength", "it is greater than 'maxLength'");
        const ExpressionId characters = rules_.repeat(json_.any_character(), least, most);
        return rules_.sequence({rules_.bytes("\""), characters, rules_.bytes("\"")});
    }
    if (!has_pattern && !has_format) return json_.any_string();
    const char* const keyword = has_pattern ? "pattern" : "format";
    if (!schema.at(keyword).is_string()) refuse(place / keyword, "it must be a string");
    std::string pattern = schema.at(keyword).get<std::string>();
    if (has_format) {
        const auto known = format_pattern(pattern);
        if (!known) {
            refuse(place / keyword,
                   fmt::format("'{}' is not supported; known are {}", pattern, format_names()));
        }
        pattern = *known;
    }
    try {
        return rules_.sequence({rules_.bytes("\""), RegexParser(without_look_around(pattern), json_).parse(),
                                rules_.bytes("\"")});
    } catch (const Error& error) {
        refuse(place / keyword, error.what());
    }
}

ExpressionId SchemaCompiler::integer(const Json& schema, const Place& place) {
    const auto least = integer_bound(tightest(schema, Side::Lower, place), Side::Lower, place / "minimum");
    const auto most = integer_bound(tightest(schema, Side::Upper, place), Side::Upper, place / "maximum");
    if (!least && !most) return json_.any_integer();
    if (least && most && *least > *most) return rules_.choice({});
    return integers_between(rules_, least, most);
}

ExpressionId SchemaCompiler::number(const Json& schema, const Place& place) {
    const auto least = tightest(schema, Side::Lower, place);
    const auto most = tightest(schema, Side::Upper, place);
    if (!least && !most) return json_.any_number();
    return numbers_between(rules_, least, most);
}

}  // namespace coterie::grammar
