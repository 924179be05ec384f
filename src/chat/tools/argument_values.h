#pragma once

#include <string>
#include <string_view>

#include "chat/tools/tool_definition.h"

namespace coterie {

/// An argument that the model wrote as plain text, as JSON: a string where the tool's schema asks for one;
/// else what the text is as JSON (also True, False and None), or a string where it is none.
std::string argument_to_json(const ToolDefinition& tool, std::string_view key, std::string_view text);

/// A string of JSON, whatever bytes the text has: U+FFFD stands for what is no UTF-8.
std::string json_text(std::string_view text);

/// Whether the schema of the argument allows strings and nothing else.
bool is_string_argument(const ToolDefinition& tool, std::string_view key);

}  // namespace coterie
