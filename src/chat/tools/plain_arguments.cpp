#include "chat/tools/plain_arguments.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "chat/tools/argument_values.h"

namespace coterie {
namespace {

using grammar::ExpressionId;
using grammar::RuleSet;
using grammar::Unsupported;
using Json = nlohmann::ordered_json;

void check_key(const std::string& key) {
    if (key.find_first_of("<>\n") == std::string::npos) return;
    fail(ErrorCode::InvalidArgument,
         "property '{}': names with '<', '>' or line ends cannot be written in this format", key);
}

ExpressionId free_value(RuleSet& rules, PlainForm form) {
    return rules.free_text(form == PlainForm::Parameter ? "</parameter>" : "</arg_value>");
}

ExpressionId argument(RuleSet& rules, const std::string& key, ExpressionId value, PlainForm form) {
    check_key(key);
    if (form == PlainForm::Parameter) {
        return rules.sequence(
            {rules.bytes("<parameter=" + key + ">\n"), value, rules.bytes("\n</parameter>\n")});
    }
    return rules.sequence({rules.marker("<arg_key>"), rules.bytes(key), rules.marker("</arg_key>"),
                           rules.bytes("\n"), rules.marker("<arg_value>"), value,
                           rules.marker("</arg_value>"), rules.bytes("\n")});
}

/// The strings that a schema lists, if it lists any.
std::vector<ExpressionId> listed_values(RuleSet& rules, const Json& schema) {
    std::vector<ExpressionId> listed;
    const Json values = schema.contains("const")  ? Json::array({schema.at("const")})
                        : schema.contains("enum") ? schema.at("enum")
                                                  : Json::array();
    for (const Json& value : values) {
        if (value.is_string()) listed.push_back(rules.bytes(value.get<std::string>()));
    }
    return listed;
}

/// A string without its quotes: one of those listed, or free.
ExpressionId string_value(RuleSet& rules, const std::string& key, const Json& schema, PlainForm form,
                          Unsupported unsupported) {
    std::vector<ExpressionId> listed = listed_values(rules, schema);
    if (!listed.empty()) return rules.choice(std::move(listed));
    if (unsupported == Unsupported::Loosen) return free_value(rules, form);
    for (const char* limit : {"minLength", "maxLength", "pattern", "format"}) {
        if (!schema.contains(limit)) continue;
        fail(ErrorCode::InvalidArgument,
             "property '{}': '{}' is not supported with the model's format of calls", key, limit);
    }
    return free_value(rules, form);
}

/// Definitions of the whole schema go with a property, whose references lead to them.
ExpressionId json_value(RuleSet& rules, const Json& whole, const Json& property, Unsupported unsupported) {
    Json schema = property;
    for (const char* definitions : {"$defs", "definitions"}) {
        if (schema.is_object() && whole.contains(definitions)) schema[definitions] = whole.at(definitions);
    }
    return rules.call(grammar::add_schema_rules(rules, schema.dump(), unsupported));
}

/// All properties must stand in the list itself.
void check_plain(const Json& schema) {
    for (const auto& [keyword, value] : schema.items()) {
        for (const char* combining : {"allOf", "anyOf", "oneOf", "$ref", "patternProperties"}) {
            if (keyword == combining)
                fail(ErrorCode::InvalidArgument,
                     "'{}' at the root is not supported with the model's format of calls", keyword);
        }
    }
}

Json properties_of(const ToolDefinition& tool) {
    const Json schema = Json::parse(tool.parameters);
    const Json properties = schema.contains("properties") ? schema.at("properties") : Json::object();
    return properties.is_object() ? properties : Json::object();
}

std::vector<std::string> required_of(const Json& schema, const Json& properties) {
    std::vector<std::string> names;
    if (!schema.contains("required") || !schema.at("required").is_array()) return names;
    for (const Json& name : schema.at("required")) {
        if (!name.is_string()) continue;
        names.push_back(name.get<std::string>());
        if (!properties.contains(names.back()))
            fail(ErrorCode::InvalidArgument, "'{}' is required and not among the properties", names.back());
    }
    return names;
}

}  // namespace

ExpressionId plain_arguments(RuleSet& rules, const ToolDefinition& tool, PlainForm form,
                             Unsupported unsupported) {
    // What the schema as a whole says is checked as for JSON; its rules are not used.
    RuleSet unused;
    grammar::add_schema_rules(unused, tool.parameters, unsupported);
    const Json schema = Json::parse(tool.parameters);
    check_plain(schema);
    const Json properties = properties_of(tool);
    const std::vector<std::string> required = required_of(schema, properties);
    std::vector<ExpressionId> parts;
    for (const auto& [key, property] : properties.items()) {
        const ExpressionId value = is_string_argument(tool, key)
                                       ? string_value(rules, key, property, form, unsupported)
                                       : json_value(rules, schema, property, unsupported);
        const ExpressionId whole = argument(rules, key, value, form);
        const bool is_required = std::find(required.begin(), required.end(), key) != required.end();
        parts.push_back(is_required ? whole : rules.optional(whole));
    }
    return rules.sequence(std::move(parts));
}

ExpressionId any_plain_arguments(RuleSet& rules, const ToolDefinition& tool, PlainForm form) {
    std::vector<ExpressionId> ways;
    const Json properties = properties_of(tool);
    for (const auto& [key, property] : properties.items()) {
        if (key.find_first_of("<>\n") == std::string::npos)
            ways.push_back(argument(rules, key, free_value(rules, form), form));
    }
    return rules.repeat(rules.choice(std::move(ways)), 0, grammar::kUnbounded);
}

}  // namespace coterie
