#pragma once

#include <cstdint>
#include <optional>

namespace coterie {

/// Unsigned 64-bit arithmetic for sizes that come from files and requests: nothing on overflow.
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
    return result;
}

inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
    return result;
}

/// Rounds up to a multiple of `alignment` (a power of two).
inline std::optional<std::uint64_t> checked_align_up(std::uint64_t value, std::uint64_t alignment) {
    const auto sum = checked_add(value, alignment - 1);
    if (!sum) return std::nullopt;
    return *sum & ~(alignment - 1);
}

}  // namespace coterie
