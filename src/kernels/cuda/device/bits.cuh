#pragma once

#include <cstdint>
#include <cuda_fp16.h>

/// Words of weights at the addresses that block types give, and bytes handled four at a time.
namespace coterie::cuda {

/// Four bytes at p, which is a multiple of `kAlignment`: one word, or the parts of two, shifted together.
/// Reads no word that holds none of the four.
template <int kAlignment>
__device__ __forceinline__ std::uint32_t word_at(const std::uint8_t* p) {
    if constexpr (kAlignment >= 4) {
        return *reinterpret_cast<const std::uint32_t*>(p);
    } else {
        const auto address = reinterpret_cast<std::uintptr_t>(p);
        const auto* aligned = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
        const unsigned shift = static_cast<unsigned>(address & 3) * 8;
        return __funnelshift_r(aligned[0], aligned[shift != 0], shift);
    }
}

/// Sixteen bytes, by the same rule.
template <int kAlignment>
__device__ __forceinline__ uint4 quad_at(const std::uint8_t* p) {
    if constexpr (kAlignment >= 16) {
        return *reinterpret_cast<const uint4*>(p);
    } else if constexpr (kAlignment >= 8) {
        const uint2 low = reinterpret_cast<const uint2*>(p)[0];
        const uint2 high = reinterpret_cast<const uint2*>(p)[1];
        return {low.x, low.y, high.x, high.y};
    } else if constexpr (kAlignment >= 4) {
        const auto* words = reinterpret_cast<const std::uint32_t*>(p);
        return {words[0], words[1], words[2], words[3]};
    } else {
        const auto address = reinterpret_cast<std::uintptr_t>(p);
        const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
        const unsigned shift = static_cast<unsigned>(address & 3) * 8;
        const std::uint32_t a = words[0], b = words[1], c = words[2], d = words[3],
                            e = words[shift != 0 ? 4 : 3];
        return {__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift), __funnelshift_r(c, d, shift),
                __funnelshift_r(d, e, shift)};
    }
}

/// Each word's bits of a mask.
__device__ __forceinline__ uint4 masked(uint4 a, std::uint32_t mask) {
    return {a.x & mask, a.y & mask, a.z & mask, a.w & mask};
}

/// Sixteen bytes where four more can be read as well: then neighbouring quads share their words.
template <int kAlignment>
__device__ __forceinline__ uint4 inner_quad_at(const std::uint8_t* p) {
    if constexpr (kAlignment >= 4) {
        return quad_at<kAlignment>(p);
    } else {
        const auto address = reinterpret_cast<std::uintptr_t>(p);
        const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
        const unsigned shift = static_cast<unsigned>(address & 3) * 8;
        const std::uint32_t a = words[0], b = words[1], c = words[2], d = words[3], e = words[4];
        return {__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift), __funnelshift_r(c, d, shift),
                __funnelshift_r(d, e, shift)};
    }
}

/// `f` of each word.
template <typename Function>
__device__ __forceinline__ uint4 each_word(uint4 a, Function f) {
    return {f(a.x), f(a.y), f(a.z), f(a.w)};
}
template <typename Function>
__device__ __forceinline__ uint4 each_word(uint4 a, uint4 b, Function f) {
    return {f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w)};
}

template <int kAlignment>
__device__ __forceinline__ std::uint32_t half_word_at(const std::uint8_t* p) {
    if constexpr (kAlignment >= 2) return *reinterpret_cast<const std::uint16_t*>(p);
    return p[0] | std::uint32_t{p[1]} << 8;
}

__device__ __forceinline__ float half_bits(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

/// Codes of at most 127 - kBias less kBias, byte by byte: the top bit lends, so that no byte borrows from the
/// next.
template <std::uint32_t kBias>
__device__ __forceinline__ std::uint32_t less(std::uint32_t codes) {
    constexpr std::uint32_t kTops = 0x80808080;
    return ((codes | kTops) - kBias * 0x01010101u) ^ kTops;
}

/// Bit i of the low four to bit 0 of byte i.
__device__ __forceinline__ std::uint32_t spread_bits(std::uint32_t bits) {
    return (bits & 15) * 0x00204081u & 0x01010101u;
}

/// Two bits each from bit 2 i of a byte to byte i.
__device__ __forceinline__ std::uint32_t spread_pairs(std::uint32_t byte) {
    return (byte & 0x03) | (byte & 0x0c) << 6 | (byte & 0x30) << 12 | (byte & 0xc0) << 18;
}

/// Byte i negated where bit i of `signs` is set.
__device__ __forceinline__ std::uint32_t negate_where(std::uint32_t bytes, std::uint32_t signs) {
    const std::uint32_t mask = spread_bits(signs) * 255u;
    return __vsub4(bytes ^ mask, mask);
}

/// Eight sign bits from seven stored ones: the eighth makes the number of set bits even.
__device__ __forceinline__ std::uint32_t even_signs(std::uint32_t stored) {
    return stored | (static_cast<std::uint32_t>(__popc(stored)) & 1u) << 7;
}

/// Sixteen signed bytes, looked up by nibbles.
struct NibbleTable {
    std::uint32_t entries[4];
};

/// The table's bytes for four codes of one byte each, below 16. A permute looks up eight entries, the top bit
/// chooses.
__device__ __forceinline__ std::uint32_t look_up(const NibbleTable& table, std::uint32_t codes) {
    const std::uint32_t pairs = (codes | codes >> 4) & 0x00ff00ffu;
    const std::uint32_t nibbles = pairs | pairs >> 8;
    const std::uint32_t select = nibbles & 0x7777;
    const std::uint32_t choose = 0x3210 | (nibbles & 0x8888) >> 1;
    return __byte_perm(__byte_perm(table.entries[0], table.entries[1], select),
                       __byte_perm(table.entries[2], table.entries[3], select), choose);
}

}  // namespace coterie::cuda
