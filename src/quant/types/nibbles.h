#pragma once

#include <cstdint>

namespace coterie::blocks {

inline int low_nibble(std::uint8_t byte) { return byte & 15; }
inline int high_nibble(std::uint8_t byte) { return byte >> 4; }

/// Nibble `index` of an array: even ones are the low halves of the bytes.
inline int nibble(const std::uint8_t* bytes, int index) {
    return (bytes[index / 2] >> (4 * (index % 2))) & 15;
}

}  // namespace coterie::blocks
