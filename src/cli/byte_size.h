#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_size_text.h"

namespace coterie::cli {

/// "512M", "12G", "1.5G" or plain bytes; K, M, G and T are powers of 1024. Throws InvalidArgument naming the
/// flag.
std::uint64_t parse_byte_size(std::string_view text, std::string_view flag);

}  // namespace coterie::cli
