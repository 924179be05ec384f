#pragma once

#include <cstdint>
#include <string>

namespace coterie {

/// "0", "999 B", "1.50 GiB": three digits.
std::string byte_size_text(std::uint64_t bytes);

}  // namespace coterie
