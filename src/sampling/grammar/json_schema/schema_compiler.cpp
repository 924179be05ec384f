#include "sampling/grammar/json_schema/schema_compiler.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/compile.h"
#include "sampling/grammar/json_schema/schema_loosening.h"
#include "sampling/grammar/json_schema/schema_merge.h"

namespace coterie::grammar {
namespace {

constexpr int kMaxSchemaDepth = 100;
constexpr std::size_t kMaxSteps = 500'000;  // parts of schemas that are read or copied

const std::string kTypes[] = {"null", "boolean", "object", "array", "string", "integer", "number"};

bool has_type(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == value.type_name();
}

/// For a schema without `type`: the types that its keywords speak of. All others would be allowed, too.
std::vector<std::string> implied_types(const Json& schema) {
    const auto has_any = [&](std::initializer_list<const char*> keywords) {
        return std::any_of(keywords.begin(), keywords.end(),
                           [&](const char* k) { return schema.contains(k); });
    };
    std::vector<std::string> types;
    if (has_any({"properties", "required", "additionalProperties"})) types.push_back("object");
    if (has_any({"items", "prefixItems", "minItems", "maxItems"})) types.push_back("array");
    if (has_any({"minLength", "maxLength", "pattern", "format"})) types.push_back("string");
    if (has_any({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) types.push_back("number");
    return types;
}

std::size_t parts_of(const Json& json) {
    std::size_t parts = 1;
    if (!json.is_structured()) return parts;
    for (const Json& part : json) parts += parts_of(part);
    return parts;
}

}  // namespace

RuleId SchemaCompiler::compile() {
    const RuleId root = rules_.new_rule("#");
    rules_by_schema_[&document_] = root;
    waiting_.push_back({&document_, root, {}});
    while (!waiting_.empty()) {
        const Reference next = waiting_.back();
        waiting_.pop_back();
        rules_.define(next.rule, schema(*next.schema, next.place));
    }
    return root;
}

ExpressionId SchemaCompiler::schema(const Json& schema, const Place& place) {
    if (unsupported_ == Unsupported::Refuse) return exact_schema(schema, place);
    try {
        return exact_schema(schema, place);
    } catch (const Error&) {
        if (is_absurd_) throw;
        return looser_schema(schema, place);
    }
}

/// Parts that cannot be expressed have been loosened already: it is this schema's own keywords that fail.
ExpressionId SchemaCompiler::looser_schema(const Json& schema, const Place& place) {
    for (const Json& looser : looser_schemas(schema)) {
        try {
            return exact_schema(looser, place);
        } catch (const Error&) {
            if (is_absurd_) throw;
        }
    }
    return json_.any_value();
}

ExpressionId SchemaCompiler::exact_schema(const Json& schema, const Place& place) {
    count_steps(1, place);
    check_depth(place);
    if (schema.is_boolean()) return schema.get<bool>() ? json_.any_value() : rules_.choice({});
    if (!schema.is_object()) refuse(place, "a schema must be an object or a boolean");
    if (!has_assertions(schema, place)) return json_.any_value();
    return object_schema(schema, place);
}

Json SchemaCompiler::merged(const Json& a, const Json& b, const Place& place) {
    count_steps(parts_of(a) + parts_of(b), place);
    return merge_schemas(document_, a, b, place);
}

void SchemaCompiler::count_steps(std::size_t steps, const Place& place) {
    steps_ += steps;
    is_absurd_ = is_absurd_ || steps_ > kMaxSteps;
    if (steps_ > kMaxSteps)
        refuse(place, fmt::format("the schema takes more than {} steps; use fewer combinations", kMaxSteps));
}

void SchemaCompiler::check_depth(const Place& place) {
    if (place.depth <= kMaxSchemaDepth) return;
    is_absurd_ = true;
    refuse(place, "the schema nests too deep, or schemas that must hold together refer to themselves");
}

/// Takes off one keyword that combines schemas after the other, and what is left is plain.
ExpressionId SchemaCompiler::object_schema(const Json& schema, const Place& place) {
    if (schema.contains("$id") && place.depth > 0) refuse(place / "$id", "it is supported at the root only");
    if (schema.contains("nullable")) return nullable(schema, place);
    if (schema.contains("$ref")) {
        if (!schema.at("$ref").is_string()) refuse(place / "$ref", "it must be a string");
        const auto target = schema.at("$ref").get<std::string>();
        const Json rest = assertions_without(schema, "$ref", place);
        if (rest.empty()) return reference(target, place);
        const Json& referred = resolve_reference(document_, target, place / "$ref");
        return this->schema(merged(rest, referred, place), place / "$ref");
    }
    if (schema.contains("allOf")) return joined(schema, place);
    for (const char* keyword : {"anyOf", "oneOf"}) {
        if (schema.contains(keyword)) return alternatives(schema, keyword, place);
    }
    if (schema.contains("const") || schema.contains("enum")) return values(schema, place);
    return typed(schema, place);
}

ExpressionId SchemaCompiler::nullable(const Json& schema, const Place& place) {
    const bool allows_null = is_nullable(schema, place);
    const ExpressionId value = this->schema(assertions_without(schema, "nullable", place), place);
    return allows_null ? rules_.choice({value, rules_.bytes("null")}) : value;
}

ExpressionId SchemaCompiler::reference(const std::string& text, const Place& place) {
    const Json& target = resolve_reference(document_, text, place / "$ref");
    const auto [known, is_new] = rules_by_schema_.try_emplace(&target, 0);
    if (is_new) {
        known->second = rules_.new_rule(text);
        waiting_.push_back({&target, known->second, {text.substr(1), 0}});
    }
    return rules_.call(known->second);
}

ExpressionId SchemaCompiler::joined(const Json& schema, const Place& place) {
    const Json& parts = schema.at("allOf");
    if (!parts.is_array() || parts.empty()) refuse(place / "allOf", "it must be an array that is not empty");
    Json all = assertions_without(schema, "allOf", place);
    for (std::size_t i = 0; i < parts.size(); ++i)
        all = merged(all, parts[i], place / "allOf" / std::to_string(i));
    return this->schema(all, place / "allOf");
}

ExpressionId SchemaCompiler::alternatives(const Json& schema, std::string_view keyword, const Place& place) {
    const Json& branches = schema.at(std::string(keyword));
    const Place here = place / keyword;
    if (!branches.is_array() || branches.empty()) refuse(here, "it must be an array that is not empty");
    if (keyword == "oneOf" && unsupported_ == Unsupported::Refuse) check_one_of(branches, here);
    const Json rest = assertions_without(schema, keyword, place);
    std::vector<ExpressionId> ways;
    for (std::size_t i = 0; i < branches.size(); ++i) {
        const Place branch = here / std::to_string(i);
        ways.push_back(rest.empty() ? this->schema(branches[i], branch)
                                    : this->schema(merged(rest, branches[i], branch), branch));
    }
    return rules_.choice(std::move(ways));
}

/// A text that fits two branches fits `anyOf` and not `oneOf`.
void SchemaCompiler::check_one_of(const Json& branches, const Place& place) {
    constexpr std::size_t kMaxBranches = 100;
    if (branches.size() > kMaxBranches) refuse(place, "it has more than 100 schemas; use 'anyOf'");
    for (std::size_t i = 0; i < branches.size(); ++i) {
        for (std::size_t j = i + 1; j < branches.size(); ++j) {
            if (are_disjoint(document_, branches[i], branches[j], place)) continue;
            refuse(place,
                   fmt::format("a value might fit both number {} and number {}; use 'anyOf', or tell them "
                               "apart by type or by a constant in a required property",
                               i, j));
        }
    }
}

ExpressionId SchemaCompiler::values(const Json& schema, const Place& place) {
    const Json& listed = schema.contains("enum") ? schema.at("enum") : Json::array({schema.at("const")});
    if (!listed.is_array()) refuse(place / "enum", "it must be an array");
    for (const auto& [keyword, value] : schema.items()) {
        const bool is_known = keyword == "enum" || keyword == "const" || keyword == "type";
        if (!is_known && is_assertion(keyword, value, place))
            refuse(place / keyword, "beside 'enum' or 'const' only 'type' is supported");
    }
    const std::vector<std::string> types =
        schema.contains("type") ? types_of(schema, place) : std::vector<std::string>();
    std::vector<ExpressionId> ways;
    for (const Json& value : listed) {
        const bool fits =
            types.empty() || std::any_of(types.begin(), types.end(),
                                         [&](const std::string& type) { return has_type(value, type); });
        if (fits && (!schema.contains("const") || value == schema.at("const")))
            ways.push_back(rules_.bytes(value.dump()));
    }
    return rules_.choice(std::move(ways));
}

std::vector<std::string> SchemaCompiler::types_of(const Json& schema, const Place& place) {
    if (!schema.contains("type")) return implied_types(schema);
    const Json& type = schema.at("type");
    std::vector<std::string> types;
    for (const Json& one : type.is_array() ? type : Json::array({type})) {
        if (!one.is_string() ||
            std::find(std::begin(kTypes), std::end(kTypes), one.get<std::string>()) == std::end(kTypes)) {
            refuse(
                place / "type",
                "it must be null, boolean, object, array, string, integer or number, or an array of these");
        }
        types.push_back(one.get<std::string>());
    }
    return types;
}

ExpressionId SchemaCompiler::typed(const Json& schema, const Place& place) {
    const std::vector<std::string> types = types_of(schema, place);
    if (types.empty() && !schema.contains("type")) return json_.any_value();
    std::vector<ExpressionId> ways;
    for (const std::string& type : types) ways.push_back(of_type(type, schema, place));
    return rules_.choice(std::move(ways));
}

ExpressionId SchemaCompiler::of_type(const std::string& type, const Json& schema, const Place& place) {
    if (type == "object") return object(schema, place);
    if (type == "array") return array(schema, place);
    if (type == "string") return string(schema, place);
    if (type == "integer") return integer(schema, place);
    if (type == "number") return number(schema, place);
    if (type == "boolean") return rules_.choice({rules_.bytes("true"), rules_.bytes("false")});
    return rules_.bytes("null");
}

RuleId add_schema_rules(RuleSet& rules, std::string_view schema, Unsupported unsupported) {
    Json document = parse_schema(schema);
    if (unsupported == Unsupported::Loosen) document = without_unknown_keywords(document);
    return SchemaCompiler(std::move(document), rules, unsupported).compile();
}

ExpressionId add_any_object(RuleSet& rules) { return JsonTexts(rules).any_object(); }

}  // namespace coterie::grammar

namespace coterie {

GrammarPointer grammar_from_json_schema(std::string_view schema, const GrammarLeadIn& lead_in) {
    grammar::RuleSet rules;
    const grammar::RuleId root = grammar::add_schema_rules(rules, schema);
    try {
        return grammar::compile(rules, root, lead_in);
    } catch (const Error& error) {
        fail(error.code(), "JSON schema: {}", error.what());
    }
}

}  // namespace coterie
