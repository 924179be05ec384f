#include "sampling/grammar/json_schema/schema_merge.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace coterie::grammar {
namespace {

constexpr std::size_t kMaxProduct = 256;  // alternatives that two anyOf may become

Json both(const Json& a, const Json& b) { return Json{{"allOf", Json::array({a, b})}}; }

std::set<std::string> type_set(const Json& type, const Place& place) {
    std::set<std::string> types;
    for (const Json& one : type.is_array() ? type : Json::array({type})) {
        if (!one.is_string()) refuse(place / "type", "it must be a string or an array of strings");
        types.insert(one.get<std::string>());
    }
    return types;
}

Json merge_types(const Json& a, const Json& b, const Place& place) {
    Json common = Json::array();
    const std::set<std::string> second = type_set(b, place);
    for (const std::string& type : type_set(a, place)) {
        if (second.count(type) != 0 || (type == "integer" && second.count("number") != 0))
            common.push_back(type);
        if (type == "number" && second.count("number") == 0 && second.count("integer") != 0)
            common.push_back("integer");
    }
    return common;
}

Json common_values(const Json& a, const Json& b) {
    Json common = Json::array();
    for (const Json& value : a) {
        if (std::find(b.begin(), b.end(), value) != b.end()) common.push_back(value);
    }
    return common;
}

/// What a schema says of a property that it does not list.
Json schema_of_others(const Json& schema) {
    return schema.contains("additionalProperties") ? schema.at("additionalProperties") : Json(true);
}

Json properties_of(const Json& schema, const Place& place) {
    if (!schema.contains("properties")) return Json::object();
    if (!schema.at("properties").is_object()) refuse(place / "properties", "it must be an object");
    return schema.at("properties");
}

/// Each property must fit both sides: as one of the listed, or as one of the others.
void merge_properties(Json& result, const Json& a, const Json& b, const Place& place) {
    const Json first = properties_of(a, place);
    const Json second = properties_of(b, place);
    if (first.empty() && second.empty() && !a.contains("additionalProperties") &&
        !b.contains("additionalProperties"))
        return;
    const auto joined = [](const Json& x, const Json& y) {
        if (x == true) return y;
        if (y == true || x == y) return x;
        if (x == false || y == false) return Json(false);
        return both(x, y);
    };
    Json merged = Json::object();
    for (const auto& [name, schema] : first.items())
        merged[name] = joined(schema, second.contains(name) ? second.at(name) : schema_of_others(b));
    for (const auto& [name, schema] : second.items()) {
        if (!first.contains(name)) merged[name] = joined(schema, schema_of_others(a));
    }
    result["properties"] = merged;
    if (a.contains("additionalProperties") || b.contains("additionalProperties"))
        result["additionalProperties"] = joined(schema_of_others(a), schema_of_others(b));
}

void merge_items(Json& result, const Json& a, const Json& b, const Place& place) {
    const auto has_positions = [](const Json& schema) {
        return schema.contains("prefixItems") || (schema.contains("items") && schema.at("items").is_array());
    };
    const bool both_speak =
        (a.contains("items") || has_positions(a)) && (b.contains("items") || has_positions(b));
    if (!both_speak) return;
    if (has_positions(a) || has_positions(b))
        refuse(place, "'prefixItems' cannot be joined with another schema's items");
    result["items"] = a.at("items") == b.at("items") ? a.at("items") : both(a.at("items"), b.at("items"));
}

Json merge_alternatives(const Json& a, const Json& b, const Place& place) {
    if (!a.is_array() || !b.is_array()) refuse(place / "anyOf", "it must be an array");
    if (a.size() * b.size() > kMaxProduct)
        refuse(place / "anyOf", "too many combinations with another 'anyOf'");
    Json product = Json::array();
    for (const Json& x : a) {
        for (const Json& y : b) product.push_back(both(x, y));
    }
    return product;
}

Json merge_limits(const std::string& keyword, const Json& a, const Json& b, const Place& place) {
    if (!a.is_number() || !b.is_number()) refuse(place / keyword, "it must be a number");
    const bool is_upper = keyword.starts_with("max") || keyword == "exclusiveMaximum";
    return (a < b) == is_upper ? a : b;
}

Json merge_required(const Json& a, const Json& b, const Place& place) {
    if (!a.is_array() || !b.is_array()) refuse(place / "required", "it must be an array of strings");
    Json all = a;
    for (const Json& name : b) {
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
    return all;
}

Json merge_values(const std::string& keyword, const Json& a, const Json& b, const Place& place) {
    static const std::set<std::string> kLimits = {"minimum",          "maximum",   "exclusiveMinimum",
                                                  "exclusiveMaximum", "minLength", "maxLength",
                                                  "minItems",         "maxItems"};
    if (a == b) return a;
    if (keyword == "type") return merge_types(a, b, place);
    if (keyword == "required") return merge_required(a, b, place);
    if (keyword == "anyOf") return merge_alternatives(a, b, place);
    if (kLimits.count(keyword) != 0) return merge_limits(keyword, a, b, place);
    if (keyword == "enum") {
        if (!a.is_array() || !b.is_array()) refuse(place / "enum", "it must be an array");
        return common_values(a, b);
    }
    if (keyword == "allOf") {
        if (!a.is_array() || !b.is_array()) refuse(place / "allOf", "it must be an array");
        Json all = a;
        all.insert(all.end(), b.begin(), b.end());
        return all;
    }
    refuse(place / keyword,
           "two schemas that must both hold differ in this keyword, which cannot be expressed");
}

/// Without silent keywords and references, with `enum` for `const` and `anyOf` for `nullable`.
Json prepared(const Json& document, const Json& schema, const Place& place) {
    const Json& target = follow_references(document, schema, place);
    if (target.is_boolean()) return target;
    if (!target.is_object()) refuse(place, "a schema must be an object or a boolean");
    if (target.contains("nullable")) {
        const Json value = assertions_without(target, "nullable", place);
        if (!is_nullable(target, place)) return prepared(document, value, place);
        return Json::object({{"anyOf", Json::array({value, Json::object({{"type", "null"}})})}});
    }
    Json plain = assertions_without(target, "const", place);
    if (!target.contains("const")) return plain;
    const Json value = Json::array({target.at("const")});
    plain["enum"] = plain.contains("enum") ? common_values(plain.at("enum"), value) : value;
    return plain;
}

std::set<std::string> possible_types(const Json& schema, const Place& place) {
    std::set<std::string> types;
    if (schema.contains("enum") && schema.at("enum").is_array()) {
        for (const Json& value : schema.at("enum"))
            types.insert(value.is_number() ? "number" : std::string(value.type_name()));
    } else if (schema.contains("type")) {
        for (const std::string& type : type_set(schema.at("type"), place))
            types.insert(type == "integer" ? "number" : type);
    } else {
        types = {"null", "boolean", "object", "array", "number", "string"};
    }
    return types;
}

bool requires_property(const Json& schema, const std::string& name) {
    if (!schema.contains("required") || !schema.at("required").is_array()) return false;
    const Json& required = schema.at("required");
    return std::find(required.begin(), required.end(), Json(name)) != required.end();
}

/// Whether a property that one side requires rules the other side out.
bool differ_in_a_property(const Json& document, const Json& a, const Json& b, const Place& place) {
    if (!a.contains("required") || !a.at("required").is_array()) return false;
    const Json mine = properties_of(a, place);
    const Json others = properties_of(b, place);
    for (const Json& entry : a.at("required")) {
        if (!entry.is_string()) continue;
        const auto name = entry.get<std::string>();
        if (!others.contains(name)) {
            if (schema_of_others(b) == false) return true;
        } else if (mine.contains(name) && requires_property(b, name)) {
            if (are_disjoint(document, mine.at(name), others.at(name), place / name)) return true;
        }
    }
    return false;
}

}  // namespace

Json merge_schemas(const Json& document, const Json& a, const Json& b, const Place& place) {
    const Json first = prepared(document, a, place);
    const Json second = prepared(document, b, place);
    if (first == false || second == false) return false;
    if (first == true) return second;
    if (second == true) return first;
    Json result = first;
    for (const auto& [keyword, value] : second.items()) {
        if (!result.contains(keyword)) {
            result[keyword] = value;
        } else if (keyword != "properties" && keyword != "additionalProperties" && keyword != "items" &&
                   keyword != "prefixItems" && keyword != "additionalItems") {
            result[keyword] = merge_values(keyword, first.at(keyword), value, place);
        }
    }
    merge_properties(result, first, second, place);
    merge_items(result, first, second, place);
    return result;
}

bool are_disjoint(const Json& document, const Json& a, const Json& b, const Place& place) {
    constexpr int kDeepest = 100;
    if (place.depth > kDeepest) return false;
    const Json first = prepared(document, a, place);
    const Json second = prepared(document, b, place);
    if (first == false || second == false) return true;
    if (first == true || second == true) return false;
    const std::set<std::string> mine = possible_types(first, place);
    const std::set<std::string> others = possible_types(second, place);
    std::set<std::string> shared;
    std::set_intersection(mine.begin(), mine.end(), others.begin(), others.end(),
                          std::inserter(shared, shared.end()));
    if (shared.empty()) return true;
    if (first.contains("enum") && second.contains("enum") && first.at("enum").is_array() &&
        second.at("enum").is_array())
        return common_values(first.at("enum"), second.at("enum")).empty();
    // Properties say nothing of other types: only two kinds of objects can differ by them.
    if (shared != std::set<std::string>{"object"}) return false;
    return differ_in_a_property(document, first, second, place) ||
           differ_in_a_property(document, second, first, place);
}

}  // namespace coterie::grammar
