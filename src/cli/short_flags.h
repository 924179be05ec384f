#pragma once

#include <optional>
#include <string>
#include <vector>

namespace coterie::cli {

/// Rewrites llama.cpp's flags of one dash and several letters ("-ctk f16") into the two-dash flags that the
/// parser knows ("--cache-type-k f16"). Anything else, and everything behind "--", stays as it is.
std::vector<std::string> expand_short_flags(std::vector<std::string> arguments);

/// The first argument of one dash and several letters that `expand_short_flags` did not know: the parser
/// would take it for a flag of one letter with a value.
std::optional<std::string> unknown_short_flag(const std::vector<std::string>& arguments);

/// All that is known of that kind.
std::vector<std::string> short_flags();

}  // namespace coterie::cli
