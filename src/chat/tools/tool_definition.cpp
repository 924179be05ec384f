#include "chat/tools/tool_definition.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "chat/json_text.h"

namespace coterie {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestName = 64;

bool is_name(const std::string& name) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-' || c == '.';
    };
    return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), fits);
}

/// Wherever it stands: a wish to be strict is never passed over.
bool is_strict(const Json& object, const std::string& place) {
    if (!object.contains("strict") || object.at("strict").is_null()) return false;
    if (!object.at("strict").is_boolean())
        fail(ErrorCode::InvalidArgument, "{}.strict: it must be true or false", place);
    return object.at("strict").get<bool>();
}

ToolDefinition read_tool(const Json& tool, const std::string& place) {
    if (!tool.is_object()) fail(ErrorCode::InvalidArgument, "{}: it must be an object", place);
    if (tool.value("type", "function") != "function")
        fail(ErrorCode::InvalidArgument, "{}: only tools of type \"function\" are supported", place);
    if (!tool.contains("function") || !tool.at("function").is_object())
        fail(ErrorCode::InvalidArgument, "{}: its object \"function\" is missing", place);
    const Json& function = tool.at("function");
    if (!function.contains("name") || !function.at("name").is_string() ||
        !is_name(function.at("name").get<std::string>())) {
        fail(ErrorCode::InvalidArgument,
             "{}.function.name: it must be 1 to {} letters, digits, '_', '-' or '.'", place, kLongestName);
    }
    ToolDefinition definition{function.at("name").get<std::string>(), R"({"type":"object"})", false};
    definition.strict = is_strict(tool, place) || is_strict(function, place + ".function");
    if (!function.contains("parameters") || function.at("parameters").is_null()) return definition;
    if (!function.at("parameters").is_object())
        fail(ErrorCode::InvalidArgument, "{}.function.parameters: it must be a JSON schema", place);
    Json parameters = function.at("parameters");
    if (parameters.contains("type") && parameters.at("type") != "object")
        fail(ErrorCode::InvalidArgument,
             "{}.function.parameters: arguments are an object; its type must be so", place);
    parameters["type"] = "object";
    definition.parameters = parameters.dump();
    return definition;
}

}  // namespace

std::vector<ToolDefinition> parse_tools(std::string_view json) {
    require_json(json, JsonKind::Array, "tools");
    std::vector<ToolDefinition> tools;
    std::set<std::string> names;
    try {
        for (const Json& tool : Json::parse(json)) {
            tools.push_back(read_tool(tool, fmt::format("tools[{}]", tools.size())));
            if (!names.insert(tools.back().name).second)
                fail(ErrorCode::InvalidArgument, "tools: the function '{}' occurs twice", tools.back().name);
        }
    } catch (const nlohmann::json::exception&) {
        fail(ErrorCode::InvalidArgument, "tools[{}]: a field has the wrong type", tools.size());
    }
    return tools;
}

}  // namespace coterie
