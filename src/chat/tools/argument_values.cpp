#include "chat/tools/argument_values.h"

#include <nlohmann/json.hpp>

namespace coterie {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string json_text(std::string_view text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_string_argument(const ToolDefinition& tool, std::string_view key) {
    const Json schema = Json::parse(tool.parameters, nullptr, false);
    if (!schema.is_object() || !schema.contains("properties") || !schema.at("properties").is_object())
        return false;
    const auto property = schema.at("properties").find(std::string(key));
    if (property == schema.at("properties").end() || !property->is_object()) return false;
    if (property->contains("enum") && property->at("enum").is_array()) {
        for (const Json& value : property->at("enum")) {
            if (!value.is_string()) return false;
        }
        return true;
    }
    if (property->contains("const")) return property->at("const").is_string();
    return property->contains("type") && property->at("type") == "string";
}

std::string argument_to_json(const ToolDefinition& tool, std::string_view key, std::string_view text) {
    if (is_string_argument(tool, key)) return json_text(text);
    if (Json::accept(text)) return std::string(text);
    if (text == "True") return "true";
    if (text == "False") return "false";
    if (text == "None") return "null";
    return json_text(text);
}

}  // namespace coterie
