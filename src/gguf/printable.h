#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace coterie::gguf {

/// Text from a file made fit for one line of an error or a listing: control characters and bytes that are not
/// UTF-8 become \n, \t or \xNN, and what exceeds `limit` bytes is cut and followed by "...".
std::string printable(std::string_view text, std::size_t limit = 96);

}  // namespace coterie::gguf
