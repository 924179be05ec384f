#pragma once

// Device code of the reduction-order study that every kernel shares: the exact parts of a group (integer sum
// and scales), computed by one thread alone or by 8 threads a block together, and the float update of the
// law.

#include <cstdint>
#include <cuda_fp16.h>

#include "reduction_order.h"

namespace coterie::lab {

struct DeviceActivation {
    const std::int8_t* quants;
    const float* scales;
    const float* scaled_sums;
    const std::int16_t* half_sums;
    int blocks;
};

/// acc = fma(sum, ds * scale, acc), then acc = fma(ms, scaled_sum, acc) for types with a minimum.
struct DeviceTerm {
    int sum;
    float ds, ms;
};

template <Type type>
__device__ __forceinline__ float add_term(const DeviceTerm& term, float scale, float scaled_sum, float acc) {
    acc = __fmaf_rn(static_cast<float>(term.sum), __fmul_rn(term.ds, scale), acc);
    return type == Type::Q4_K ? __fmaf_rn(term.ms, scaled_sum, acc) : acc;
}

__device__ __forceinline__ std::uint32_t word_at(const void* p) {
    return *static_cast<const std::uint32_t*>(p);
}
__device__ __forceinline__ float half_bits(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

/// Four bytes at an address that is only a multiple of 2: two aligned words, shifted together.
__device__ __forceinline__ std::uint32_t word_at_even(const std::uint8_t* p) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto* aligned = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
    const unsigned shift = (address & 2) * 8;
    return __funnelshift_r(aligned[0], aligned[shift / 16], shift);
}

/// Four table values of IQ4_XS for the nibbles in bits 0..15 of `nibbles`; a permute looks up 8 entries, the
/// top bit chooses.
__device__ __forceinline__ std::uint32_t iq4_values(std::uint32_t nibbles) {
    constexpr std::uint32_t t0 = 0xbfad9881, t1 = 0xf6eaddcf, t2 = 0x26190d01, t3 = 0x71594535;
    const std::uint32_t select = nibbles & 0x7777;
    const std::uint32_t choose = 0x3210 | (nibbles & 0x8888) >> 1;
    return __byte_perm(__byte_perm(t0, t1, select), __byte_perm(t2, t3, select), choose);
}

/// Codes of 4 bytes: the low nibbles' values in byte order, then the high nibbles'.
__device__ __forceinline__ uint2 iq4_codes(std::uint32_t bytes) {
    const std::uint32_t first = iq4_values(bytes);
    const std::uint32_t second = iq4_values(bytes >> 16);
    return make_uint2(__byte_perm(first, second, 0x6420), __byte_perm(first, second, 0x7531));
}

struct ScalePair {
    float ds, ms;
};

__device__ __forceinline__ ScalePair q4_k_scales(const uint4& head, int k) {
    const int shift = 8 * (k & 3);
    std::uint32_t scale = head.y >> shift & 63;
    std::uint32_t minimum = head.z >> shift & 63;
    if (k >= 4) {
        scale = (head.w >> shift & 15) | (head.y >> shift >> 2 & 48);
        minimum = (head.w >> shift >> 4 & 15) | (head.z >> shift >> 2 & 48);
    }
    return {__fmul_rn(half_bits(head.x), static_cast<float>(scale)),
            -__fmul_rn(half_bits(head.x >> 16), static_cast<float>(minimum))};
}

__device__ __forceinline__ float iq4_xs_scale(std::uint32_t head, std::uint32_t low, int k) {
    const int scale = static_cast<int>((low >> 4 * k & 15) | (head >> (16 + 2 * k) & 3) << 4);
    return __fmul_rn(half_bits(head), static_cast<float>(scale - 32));
}

/// The activation words that thread `t` of 8 needs for one block, kept for several rows.
struct ActivationPart {
    std::uint32_t words[8];
    int half_sums[4];
};

template <Type type>
__device__ __forceinline__ ActivationPart load_activation(const DeviceActivation& x, int b, int t) {
    ActivationPart part = {};
    const std::int8_t* q = x.quants + 256 * b;
    if constexpr (type == Type::Q4_K) {  // 16 bytes: half of the groups 2 (t / 2) and 2 (t / 2) + 1
        const auto* words = reinterpret_cast<const uint4*>(q + 64 * (t / 2) + 16 * (t & 1));
        reinterpret_cast<uint4*>(part.words)[0] = words[0];
        reinterpret_cast<uint4*>(part.words)[1] = words[2];
    } else if constexpr (type == Type::Q6_K) {  // 8 values of each of the four groups of half t / 4
        for (int k = 0; k < 4; ++k) {
            const auto pair = *reinterpret_cast<const uint2*>(q + 128 * (t / 4) + 32 * k + 8 * (t & 3));
            part.words[2 * k] = pair.x;
            part.words[2 * k + 1] = pair.y;
        }
    } else {
        const auto* words = reinterpret_cast<const uint4*>(q + 32 * t);
        reinterpret_cast<uint4*>(part.words)[0] = words[0];
        reinterpret_cast<uint4*>(part.words)[1] = words[1];
    }
    return part;
}

/// Eight neighbouring threads read one block together; thread t gets the term of group t.
template <Type type>
__device__ __forceinline__ DeviceTerm block_term(const std::uint8_t* block, const ActivationPart& x, int t) {
    DeviceTerm term = {};
    if constexpr (type == Type::Q4_K) {
        const uint4 codes = *reinterpret_cast<const uint4*>(block + 16 + 16 * t);
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
        int low = 0;
        int high = 0;
        for (int i = 0; i < 4; ++i) {
            low = __dp4a(static_cast<int>(words[i] & 0x0f0f0f0f), static_cast<int>(x.words[i]), low);
            high =
                __dp4a(static_cast<int>(words[i] >> 4 & 0x0f0f0f0f), static_cast<int>(x.words[4 + i]), high);
        }
        const int mine = t & 1 ? high : low;
        term.sum = mine + __shfl_xor_sync(0xffffffff, t & 1 ? low : high, 1);
        const ScalePair scales = q4_k_scales(*reinterpret_cast<const uint4*>(block), t);
        term.ds = scales.ds;
        term.ms = scales.ms;
    } else if constexpr (type == Type::Q6_K) {
        const int half = t / 4;
        const int part = t & 3;
        int sums[4] = {};
        for (int i = 0; i < 2; ++i) {
            const std::uint32_t a = word_at_even(block + 64 * half + 8 * part + 4 * i);
            const std::uint32_t c = word_at_even(block + 64 * half + 32 + 8 * part + 4 * i);
            const std::uint32_t high = word_at_even(block + 128 + 32 * half + 8 * part + 4 * i);
            const std::uint32_t codes[4] = {(a & 0x0f0f0f0f) | (high << 4 & 0x30303030),
                                            (c & 0x0f0f0f0f) | (high << 2 & 0x30303030),
                                            (a >> 4 & 0x0f0f0f0f) | (high & 0x30303030),
                                            (c >> 4 & 0x0f0f0f0f) | (high >> 2 & 0x30303030)};
            for (int k = 0; k < 4; ++k)
                sums[k] = __dp4a(static_cast<int>(__vsub4(codes[k], 0x20202020)),
                                 static_cast<int>(x.words[2 * k + i]), sums[k]);
        }
        for (int k = 0; k < 4; ++k)
            sums[k] *= static_cast<std::int8_t>(block[192 + 8 * half + 2 * k + part / 2]);
        // Four partial sums in each of four threads -> thread `part` holds the whole sum of group `part`.
        const bool upper = part & 2;
        const int first =
            (upper ? sums[2] : sums[0]) + __shfl_xor_sync(0xffffffff, upper ? sums[0] : sums[2], 2);
        const int second =
            (upper ? sums[3] : sums[1]) + __shfl_xor_sync(0xffffffff, upper ? sums[1] : sums[3], 2);
        term.sum = (part & 1 ? second : first) + __shfl_xor_sync(0xffffffff, part & 1 ? first : second, 1);
        term.ds = half_bits(*reinterpret_cast<const std::uint16_t*>(block + 208));
    } else {
        const auto* codes = reinterpret_cast<const uint2*>(block + 8 + 16 * t);
        const uint2 a = codes[0];
        const uint2 c = codes[1];
        const std::uint32_t words[4] = {a.x, a.y, c.x, c.y};
        for (int i = 0; i < 4; ++i) {
            const uint2 values = iq4_codes(words[i]);
            term.sum = __dp4a(static_cast<int>(values.x), static_cast<int>(x.words[i]), term.sum);
            term.sum = __dp4a(static_cast<int>(values.y), static_cast<int>(x.words[4 + i]), term.sum);
        }
        const uint2 head = *reinterpret_cast<const uint2*>(block);
        term.ds = iq4_xs_scale(head.x, head.y, t);
    }
    return term;
}

/// One thread alone computes the term of group k of a block.
template <Type type>
__device__ __forceinline__ DeviceTerm lone_term(const std::uint8_t* block, const DeviceActivation& x, int b,
                                                int k) {
    DeviceTerm term = {};
    const auto* q = reinterpret_cast<const int*>(x.quants + 256 * b + 32 * k);
    if constexpr (type == Type::Q4_K) {
        for (int i = 0; i < 8; ++i) {
            const std::uint32_t codes =
                word_at(block + 16 + 32 * (k / 2) + 4 * i) >> 4 * (k & 1) & 0x0f0f0f0f;
            term.sum = __dp4a(static_cast<int>(codes), q[i], term.sum);
        }
        const ScalePair scales = q4_k_scales(*reinterpret_cast<const uint4*>(block), k);
        term.ds = scales.ds;
        term.ms = scales.ms;
    } else if constexpr (type == Type::Q6_K) {
        const std::uint8_t* low = block + 64 * (k / 4) + 32 * (k & 1);
        int sums[2] = {};
        for (int i = 0; i < 8; ++i) {
            const std::uint32_t nibbles = word_at_even(low + 4 * i) >> 2 * (k & 2) & 0x0f0f0f0f;
            const std::uint32_t high =
                word_at_even(block + 128 + 32 * (k / 4) + 4 * i) >> 2 * (k & 3) & 0x03030303;
            sums[i / 4] =
                __dp4a(static_cast<int>(__vsub4(nibbles | high << 4, 0x20202020)), q[i], sums[i / 4]);
        }
        term.sum = sums[0] * static_cast<std::int8_t>(block[192 + 2 * k]) +
                   sums[1] * static_cast<std::int8_t>(block[193 + 2 * k]);
        term.ds = half_bits(*reinterpret_cast<const std::uint16_t*>(block + 208));
    } else {
        for (int i = 0; i < 4; ++i) {
            const uint2 values = iq4_codes(word_at(block + 8 + 16 * k + 4 * i));
            term.sum = __dp4a(static_cast<int>(values.x), q[i], term.sum);
            term.sum = __dp4a(static_cast<int>(values.y), q[4 + i], term.sum);
        }
        term.ds = iq4_xs_scale(word_at(block), word_at(block + 4), k);
    }
    return term;
}

}  // namespace coterie::lab
