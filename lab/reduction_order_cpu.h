#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduction_order.h"

namespace coterie::lab {

/// out[r] = row r times x. Rows are a multiple of 16 and follow each other without gaps.
using MatrixVector = void (*)(const std::uint8_t* matrix, int rows, const Activation& x, float* out);

/// How a kernel spreads its work over a vector.
enum class Layout {
    LanePerRow,  ///< each lane owns a row (8 or 16 rows at a time); any order costs the same integer work
    RowAtATime,  ///< each lane owns one of a block's 8 groups
};

struct Kernel {
    Type type;
    Order order;
    Layout layout;
    MatrixVector run;
};

std::span<const Kernel> avx2_kernels();
std::span<const Kernel> avx512_kernels();

/// How far ahead kernels that walk a row fetch.
inline constexpr int kPrefetchDistance = 8192;

/// Groups of the longest row measured.
inline constexpr int kMaximumGroups = 128;

/// Asks for `count` bytes. Kernels with a lane per row must: they hop between rows where no hardware
/// prefetcher follows, although 8 or 16 neighbouring rows are one stretch of memory, so they fetch the next
/// stretch linearly themselves.
inline void prefetch(const std::uint8_t* bytes, int count) {
#ifdef COTERIE_LAB_NO_PREFETCH
    static_cast<void>(bytes);
    static_cast<void>(count);
#else
    for (int i = 0; i < count; i += 64) __builtin_prefetch(bytes + i);
#endif
}

/// The start of the panel of rows to fetch while the one at `panel` is computed: the next, or of short panels
/// a later one.
template <int kRows>
const std::uint8_t* row_ahead(const std::uint8_t* panel, std::size_t stride) {
    const std::size_t bytes = kRows * stride;
    return panel + (kPrefetchDistance + bytes - 1) / bytes * bytes;
}

inline std::uint32_t load_word(const void* bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, 4);
    return word;
}

/// The eight 6-bit scales and minima of a Q4_K block, one a byte.
struct PackedScales {
    std::uint64_t scales, minima;
};

inline PackedScales unpack_q4_k_scales(const std::uint8_t* block) {
    const std::uint32_t a = load_word(block + 4);
    const std::uint32_t b = load_word(block + 8);
    const std::uint32_t c = load_word(block + 12);
    const std::uint32_t high_scales = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030);
    const std::uint32_t high_minima = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    return {(a & 0x3f3f3f3f) | std::uint64_t{high_scales} << 32,
            (b & 0x3f3f3f3f) | std::uint64_t{high_minima} << 32};
}

}  // namespace coterie::lab
