#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coterie::grammar {

/// The pattern (regex.h) of a schema's `format`; nothing for one that is not known. Patterns allow a part of
/// what the format does and nothing else: an e-mail address without quotes, an IPv6 address of eight groups.
std::optional<std::string_view> format_pattern(std::string_view format);

/// A pattern that allows the same texts without look-around, for one that generators of schemas are known to
/// write; any other as it is.
std::string_view without_look_around(std::string_view pattern);

/// All known formats, with commas between them.
std::string format_names();

}  // namespace coterie::grammar
