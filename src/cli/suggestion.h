#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coterie::cli {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to a mistyped word; nothing where none is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace coterie::cli
