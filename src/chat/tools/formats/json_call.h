#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coterie {

/// The beginning of a call that is a JSON object: {"name": "NAME", "arguments": { ... up to before the inner
/// brace. "parameters" counts as "arguments".
struct JsonCallHead {
    enum class Kind { No, Partly, Whole };
    Kind kind;
    std::string name = {};
    std::size_t bytes = 0;
};
JsonCallHead read_json_call_head(std::string_view text);

struct JsonCall {
    std::string name;
    std::string arguments;  ///< one JSON object
    std::string id;         ///< or empty
};
/// A whole object with a name and with arguments, as an object or as a string that holds one. No arguments
/// are {}.
std::optional<JsonCall> read_json_call(const std::string& json);

}  // namespace coterie
