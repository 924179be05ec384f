#include "sampling/grammar/json_schema/schema_document.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace coterie::grammar {
namespace {

constexpr std::size_t kMaxTextBytes = 512 << 10;
constexpr std::size_t kMaxMembers = 2000;
constexpr std::size_t kMaxTextDepth = 100;

/// Checks a text before values are built from it.
struct LimitCheck : nlohmann::json_sax<nlohmann::json> {
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return open(); }
    bool key(string_t&) override {
        if (++members.back() <= kMaxMembers) return true;
        problem = fmt::format("an object has more than {} members", kMaxMembers);
        return false;
    }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
        problem = fmt::format("no valid JSON at byte {}", position);
        return false;
    }

    bool open() {
        members.push_back(0);
        if (members.size() <= kMaxTextDepth) return true;
        problem = fmt::format("it nests more than {} deep", kMaxTextDepth);
        return false;
    }
    bool close() {
        members.pop_back();
        return true;
    }

    std::vector<std::size_t> members;
    std::string problem;
};

constexpr std::string_view kAssertions[] = {
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "oneOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
};
/// Keywords of JSON Schema, OpenAPI and their users that say nothing about which values are valid.
constexpr std::string_view kSilent[] = {
    "$anchor",         "$comment",         "$defs",         "$id",       "$schema",
    "contentEncoding", "contentMediaType", "contentSchema", "default",   "definitions",
    "deprecated",      "description",      "discriminator", "example",   "examples",
    "externalDocs",    "readOnly",         "title",         "writeOnly", "xml",
};

template <std::size_t N>
bool contains(const std::string_view (&list)[N], std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

/// Keywords that rule nothing out by this value; generators of schemas write them all the same.
bool allows_all(std::string_view keyword, const Json& value) {
    if (keyword == "uniqueItems") return value == false;
    if (keyword == "minProperties") return value == 0;
    if (keyword == "propertyNames")
        return value == true || value == Json::object() || value == Json{{"type", "string"}};
    return false;
}

}  // namespace

Place Place::operator/(std::string_view key) const {
    std::string escaped;
    for (const char c : key) {
        if (c == '~') {
            escaped += "~0";
        } else if (c == '/') {
            escaped += "~1";
        } else {
            escaped += c;
        }
    }
    return {pointer + "/" + escaped, depth + 1};
}

void refuse(const Place& place, std::string_view problem) {
    fail(ErrorCode::InvalidArgument, "JSON schema, at {}: {}",
         place.pointer.empty() ? "its root" : place.pointer, problem);
}

Json parse_schema(std::string_view text) {
    if (text.size() > kMaxTextBytes)
        refuse({}, fmt::format("it has {} bytes; at most {} are supported", text.size(), kMaxTextBytes));
    LimitCheck check;
    if (!nlohmann::json::sax_parse(text, &check)) refuse({}, check.problem);
    return Json::parse(text);
}

const Json& resolve_reference(const Json& document, const std::string& reference, const Place& place) {
    if (reference != "#" && !reference.starts_with("#/"))
        refuse(place,
               fmt::format("'{}': only references within the schema (\"#/...\") are supported", reference));
    if (reference.find('%') != std::string::npos)
        refuse(place, fmt::format("'{}': percent signs in references are not supported", reference));
    try {
        const Json::json_pointer pointer(reference.substr(1));
        if (!document.contains(pointer)) refuse(place, fmt::format("'{}' refers to nothing", reference));
        return document.at(pointer);
    } catch (const nlohmann::json::exception&) {
        refuse(place, fmt::format("'{}' is no JSON pointer", reference));
    }
}

const Json& follow_references(const Json& document, const Json& schema, const Place& place) {
    const Json* current = &schema;
    std::set<const Json*> seen;
    while (current->is_object() && current->contains("$ref") &&
           !has_assertions(assertions_without(*current, "$ref", place), place)) {
        if (!seen.insert(current).second) refuse(place, "this reference leads back to itself");
        if (!current->at("$ref").is_string()) refuse(place / "$ref", "it must be a string");
        current = &resolve_reference(document, current->at("$ref").get<std::string>(), place / "$ref");
    }
    return *current;
}

bool is_known(const std::string& keyword, const Json& value) {
    return contains(kAssertions, keyword) || contains(kSilent, keyword) || keyword.starts_with("x-") ||
           allows_all(keyword, value);
}

bool is_assertion(const std::string& keyword, const Json& value, const Place& place) {
    if (!is_known(keyword, value))
        refuse(place / keyword, "this keyword is not supported (docs/grammars.md lists those that are)");
    return contains(kAssertions, keyword);
}

bool has_assertions(const Json& schema, const Place& place) {
    if (!schema.is_object()) return true;
    bool found = false;
    for (const auto& [keyword, value] : schema.items()) found |= is_assertion(keyword, value, place);
    return found;
}

Json assertions_without(const Json& schema, std::string_view removed, const Place& place) {
    Json rest = Json::object();
    for (const auto& [keyword, value] : schema.items()) {
        if (keyword != removed && is_assertion(keyword, value, place)) rest[keyword] = value;
    }
    return rest;
}

bool is_nullable(const Json& schema, const Place& place) {
    if (!schema.contains("nullable")) return false;
    if (!schema.at("nullable").is_boolean()) refuse(place / "nullable", "it must be true or false");
    return schema.at("nullable").get<bool>();
}

}  // namespace coterie::grammar
