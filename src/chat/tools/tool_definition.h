#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coterie {

/// A function that the model may call.
struct ToolDefinition {
    std::string name;
    std::string parameters;  ///< JSON schema of the arguments, an object; {"type":"object"} if none was given
    bool strict = false;     ///< a schema that no grammar can express is refused instead of loosened
};

/// Reads the `tools` of a request in OpenAI's chat shape: [{"type": "function", "function": {"name": ...,
/// "parameters": {...}}}]. The text itself goes to the template as it is (RenderRequest::tools). Throws
/// InvalidArgument that names the place for anything else, names with characters outside [A-Za-z0-9_.-] or
/// longer than 64, and names that occur twice.
std::vector<ToolDefinition> parse_tools(std::string_view json);

}  // namespace coterie
