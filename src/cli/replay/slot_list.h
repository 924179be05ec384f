#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coterie::cli {

/// "16" slots or "25%" of `experts`, turned into slots, ascending and each once. Throws InvalidArgument for
/// what is neither, and for more slots than experts.
std::vector<std::int32_t> parse_slots(const std::vector<std::string>& list, std::int32_t experts);

}  // namespace coterie::cli
