#pragma once

#include <cstddef>
#include <span>

namespace coterie {

/// Tells the system that these bytes of a mapped file are not needed soon, so that it may use their memory
/// for something else. Only whole pages count; what is read again comes from the file.
void page_out(std::span<const std::byte> bytes);

}  // namespace coterie
