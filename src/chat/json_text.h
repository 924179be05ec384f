#pragma once

#include <string>
#include <string_view>

namespace coterie {

/// Text as a JSON string with its quotes. Throws InvalidArgument, naming `what`, for text that is not valid
/// UTF-8.
std::string json_string(std::string_view text, std::string_view what);

enum class JsonKind { Array, Object };

/// Throws InvalidArgument, naming `what`, unless `json` is one complete value of the kind: valid UTF-8 and no
/// lone surrogates in it. What has passed may be pasted into a larger JSON text.
void require_json(std::string_view json, JsonKind kind, std::string_view what);

}  // namespace coterie
