#include "sampling/grammar/json_schema/schema_loosening.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace coterie::grammar {
namespace {

bool is_among(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Such keywords may bring properties of their own, which a schema without them would rule out.
bool brings_properties(std::string_view keyword) {
    return is_among(keyword, {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "then", "else",
                              "patternProperties", "dependentSchemas", "dependencies", "minProperties"});
}

bool holds_named_schemas(std::string_view keyword) {
    return is_among(keyword, {"properties", "$defs", "definitions"});
}

bool holds_schemas(std::string_view keyword) {
    return is_among(keyword, {"items", "prefixItems", "additionalItems", "additionalProperties", "allOf",
                              "anyOf", "oneOf"});
}

Json known_parts(std::string_view keyword, const Json& value) {
    const bool has_parts = value.is_array() ? holds_schemas(keyword) : holds_named_schemas(keyword);
    if (!has_parts || !value.is_structured())
        return holds_schemas(keyword) ? without_unknown_keywords(value) : value;
    Json parts = value;
    for (Json& part : parts) part = without_unknown_keywords(part);
    return parts;
}

/// The schema with these keywords only.
Json reduced_to(const Json& schema, std::initializer_list<std::string_view> kept) {
    Json rest = Json::object();
    bool is_open = false;
    for (const auto& [keyword, value] : schema.items()) {
        if (is_among(keyword, kept)) {
            rest[keyword] = value;
        } else {
            is_open = is_open || brings_properties(keyword);
        }
    }
    if (is_open && schema.contains("type")) rest["additionalProperties"] = true;
    return is_open && !schema.contains("type") ? Json::object() : rest;
}

}  // namespace

Json without_unknown_keywords(const Json& schema) {
    if (!schema.is_object()) return schema;
    Json rest = Json::object();
    bool is_open = false;
    for (const auto& [keyword, value] : schema.items()) {
        if (is_known(keyword, value)) {
            rest[keyword] = known_parts(keyword, value);
        } else {
            is_open = is_open || brings_properties(keyword);
        }
    }
    const bool lists_properties = rest.contains("properties") || rest.contains("additionalProperties");
    if (is_open && lists_properties) rest["additionalProperties"] = true;
    return rest;
}

std::vector<Json> looser_schemas(const Json& schema) {
    if (!schema.is_object()) return {};
    Json without_texts = schema;
    without_texts.erase("pattern");
    without_texts.erase("format");
    return {without_texts,
            reduced_to(schema, {"type", "enum", "const", "properties", "required", "additionalProperties",
                                "items", "prefixItems", "minItems", "maxItems"}),
            reduced_to(schema, {"type", "properties", "required", "additionalProperties"}),
            reduced_to(schema, {"type"})};
}

}  // namespace coterie::grammar
