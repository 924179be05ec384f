#pragma once

// The tensor-core tile of the study: out[row][token] for int8 activations of many tokens. A warp owns 16 rows
// and 8 * kTokenTiles tokens; one mma.sync m16n8k32 (two m16n8k16 where a group has two scales) gives a
// group's integer sums, which are then added to float accumulators in the order of the law.

#include "reduction_order_gpu.h"

namespace coterie::lab {

enum class TileKernel {
    Segments,          ///< (a) two accumulators an output
    SegmentsOfBlocks,  ///< (a) where segments are whole blocks (rows of a multiple of 2048 values)
    Lanes4,            ///< (d) four
    Lanes8,            ///< (b) eight
    Lanes8Strided,  ///< (b) two, by walking the row in steps of 8 groups: weights are read from cache 8 times
    Lanes32,        ///< (c) thirty-two
    Free,           ///< one
};

/// Activations in fragment order, so that a thread's operand is one 8-byte load: [group][token / 8][lane],
/// and per token pair [group][token / 2] its two scales and two scaled sums.
struct TileActivation {
    const uint2* fragments;
    const float4* scales;
    int blocks;
    int tokens;
};

/// The A fragment of one group: rows lane / 4 and lane / 4 + 8, values 4 (lane % 4) .. + 3 and those + 16.
struct RowFragment {
    std::uint32_t low[2], high[2];  ///< [row]: values of the first and the second half of the group
    float ds[2], ms[2];             ///< [row]
    int half_scales[2][2];          ///< [row][half], Q6_K only
};

template <Type type>
__device__ __forceinline__ RowFragment load_fragment(const std::uint8_t* row0, std::size_t eight_rows, int k,
                                                     int quad) {
    RowFragment f = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const std::uint8_t* block = row0 + r * eight_rows;
        if constexpr (type == Type::Q4_K) {
            const std::uint8_t* codes = block + 16 + 32 * (k / 2) + 4 * quad;
            f.low[r] = word_at(codes) >> 4 * (k & 1) & 0x0f0f0f0f;
            f.high[r] = word_at(codes + 16) >> 4 * (k & 1) & 0x0f0f0f0f;
            const ScalePair scales = q4_k_scales(*reinterpret_cast<const uint4*>(block), k);
            f.ds[r] = scales.ds;
            f.ms[r] = scales.ms;
        } else if constexpr (type == Type::Q6_K) {
            const std::uint8_t* low = block + 64 * (k / 4) + 32 * (k & 1) + 4 * quad;
            const std::uint8_t* high = block + 128 + 32 * (k / 4) + 4 * quad;
            std::uint32_t codes[2];
#pragma unroll
            for (int half = 0; half < 2; ++half)
                codes[half] = (word_at_even(low + 16 * half) >> 2 * (k & 2) & 0x0f0f0f0f) |
                              (word_at_even(high + 16 * half) >> 2 * (k & 3) & 0x03030303) << 4;
            f.low[r] = __vsub4(codes[0], 0x20202020);
            f.high[r] = __vsub4(codes[1], 0x20202020);
            f.half_scales[r][0] = static_cast<std::int8_t>(block[192 + 2 * k]);
            f.half_scales[r][1] = static_cast<std::int8_t>(block[193 + 2 * k]);
            f.ds[r] = half_bits(*reinterpret_cast<const std::uint16_t*>(block + 208));
        } else {
            const uint2 codes = iq4_codes(word_at(block + 8 + 16 * k + 4 * quad));
            f.low[r] = codes.x;
            f.high[r] = codes.y;
            f.ds[r] = iq4_xs_scale(word_at(block), word_at(block + 4), k);
        }
    }
    return f;
}

__device__ __forceinline__ void mma_32(int c[4], const RowFragment& a, uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a.low[0]), "r"(a.low[1]), "r"(a.high[0]), "r"(a.high[1]), "r"(b.x), "r"(b.y));
}

__device__ __forceinline__ void mma_16(int c[4], const std::uint32_t a[2], std::uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}

/// The four integer sums of a group as floats. Sums start at the bits of 1.5 * 2^23, so that a subtraction
/// replaces the slow conversion; exact for |sum| < 2^22, which half-group sums and groups with one scale
/// keep.
template <Type type>
__device__ __forceinline__ void group_sums(const RowFragment& a, uint2 b, float out[4]) {
    constexpr int kMagicBits = 0x4b400000;
    constexpr float kMagic = 12582912.0f;
    int c[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
    if constexpr (type == Type::Q6_K) {
        int d[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
        mma_16(c, a.low, b.x);
        mma_16(d, a.high, b.y);
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // products of integers below 2^24: every step is exact
            const float first = __fsub_rn(__int_as_float(c[i]), kMagic);
            const float second = __fsub_rn(__int_as_float(d[i]), kMagic);
            out[i] = __fmaf_rn(second, static_cast<float>(a.half_scales[i / 2][1]),
                               __fmul_rn(first, static_cast<float>(a.half_scales[i / 2][0])));
        }
    } else {
        mma_32(c, a, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) out[i] = __fsub_rn(__int_as_float(c[i]), kMagic);
    }
}

template <int kWidth>
__device__ __forceinline__ float sum_pairwise(float* lanes) {
#pragma unroll
    for (int l = 0; l < kWidth; ++l) lanes[l] = __fadd_rn(lanes[l], lanes[l + kWidth]);
    if constexpr (kWidth > 1) return sum_pairwise<kWidth / 2>(lanes);
    return lanes[0];
}

template <int kLanes>
__device__ __forceinline__ float sum_lanes(float* lanes) {
    if constexpr (kLanes == 32) return sum_pairwise<16>(lanes);
    float total = 0.0f;
#pragma unroll
    for (int l = 0; l < kLanes; ++l) total = __fadd_rn(total, lanes[l]);
    return total;
}

template <Type type, TileKernel kind, int kTokenTiles>
__global__ void __launch_bounds__(128) tile(const std::uint8_t* matrix, TileActivation x, float* out) {
    constexpr int kLanes = kind == TileKernel::Lanes32  ? 32
                           : kind == TileKernel::Lanes8 ? 8
                           : kind == TileKernel::Lanes4 ? 4
                                                        : 1;
    constexpr bool kHasTotal = kind == TileKernel::Segments || kind == TileKernel::SegmentsOfBlocks ||
                               kind == TileKernel::Lanes8Strided;
    const int lane = threadIdx.x & 31;
    const int row = (blockIdx.y * 4 + threadIdx.x / 32) * 16 + lane / 4;
    const int token_tile = blockIdx.x * kTokenTiles;
    const std::size_t stride = static_cast<std::size_t>(x.blocks) * block_bytes(type);
    const std::uint8_t* p = matrix + row * stride;
    float lanes[kTokenTiles][4][kLanes] = {};
    float total[kTokenTiles][4] = {};
    const auto add_group = [&](int g, int k, int l) {
        const RowFragment a = load_fragment<type>(p + g / 8 * block_bytes(type), 8 * stride, k, lane & 3);
#pragma unroll
        for (int n = 0; n < kTokenTiles; ++n) {
            const std::size_t tile_index = static_cast<std::size_t>(g) * (x.tokens / 8) + token_tile + n;
            const float4 scales = x.scales[tile_index * 4 + (lane & 3)];
            float sums[4];
            group_sums<type>(a, x.fragments[tile_index * 32 + lane], sums);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& acc = lanes[n][i][l];
                acc = __fmaf_rn(sums[i], __fmul_rn(a.ds[i / 2], i & 1 ? scales.y : scales.x), acc);
                if constexpr (type == Type::Q4_K)
                    acc = __fmaf_rn(a.ms[i / 2], i & 1 ? scales.w : scales.z, acc);
            }
        }
    };
    const auto close = [&] {
#pragma unroll
        for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                total[n][i] = __fadd_rn(total[n][i], lanes[n][i][0]);
                lanes[n][i][0] = 0.0f;
            }
    };
    if constexpr (kind == TileKernel::Lanes8Strided) {
        for (int k = 0; k < 8; ++k) {
            for (int b = 0; b < x.blocks; ++b) add_group(8 * b + k, k, 0);
            close();
        }
    } else {
        constexpr int kStep = kLanes == 32 ? 32 : 8;
        int left = x.blocks;  // groups up to the end of the segment: a row of whole blocks has segments of
                              // `blocks` groups
        for (int first = 0; first < 8 * x.blocks; first += kStep) {
#pragma unroll
            for (int l = 0; l < kStep; ++l) {
                if (kStep == 32 && first + l >= 8 * x.blocks) continue;  // a break would keep the loop rolled
                add_group(first + l, l % 8, l % kLanes);
                if constexpr (kind == TileKernel::SegmentsOfBlocks)
                    if (l == 7 && (left -= 8) == 0) close(), left = x.blocks;
                if constexpr (kind == TileKernel::Segments)
                    if (--left == 0) close(), left = x.blocks;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int token = (token_tile + n) * 8 + 2 * (lane & 3) + (i & 1);
            const float sum = kHasTotal     ? total[n][i]
                              : kLanes == 1 ? lanes[n][i][0]
                                            : sum_lanes<kLanes>(lanes[n][i]);
            out[static_cast<std::size_t>(token) * gridDim.y * 64 + row + 8 * (i / 2)] = sum;
        }
}

}  // namespace coterie::lab
