#pragma once

#include <string>
#include <vector>

namespace coterie::cli {

/// Rewrites llama.cpp's flags of one dash and several letters ("-ctk f16") into the two-dash flags that the
/// parser knows ("--cache-type-k f16"). Anything else, and everything behind "--", stays as it is.
std::vector<std::string> expand_short_flags(std::vector<std::string> arguments);

}  // namespace coterie::cli
