#pragma once

#include <cstddef>
#include <cstdint>

namespace coterie::reference {

/// A block of a Q8_0 cache row: a binary16 scale, then 32 signed bytes.
inline constexpr std::int64_t kQ8BlockValues = 32;
inline constexpr std::int64_t kQ8ScaleBytes = 2;
inline constexpr std::int64_t kQ8BlockBytes = kQ8ScaleBytes + kQ8BlockValues;

/// Blocks whose largest magnitude is below this hold zeros, as activation groups do.
inline constexpr float kQ8SmallestMaximum = 1e-35f;

}  // namespace coterie::reference
