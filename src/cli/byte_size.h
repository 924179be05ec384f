#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coterie::cli {

/// "512M", "12G", "1.5G" or plain bytes; K, M, G and T are powers of 1024. Throws InvalidArgument naming the
/// flag.
std::uint64_t parse_byte_size(std::string_view text, std::string_view flag);

/// "0", "999 B", "1.50 GiB": three digits.
std::string byte_size_text(std::uint64_t bytes);

}  // namespace coterie::cli
