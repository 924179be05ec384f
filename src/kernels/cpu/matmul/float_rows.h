#pragma once

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul/target.h"
#include "quant/activation.h"

// Products of F32, F16 and BF16 rows with binary32 activations: a row's 32 lanes of
// docs/canonical-arithmetic.md lie in consecutive vectors.

namespace coterie::cpu::matmul::COTERIE_ISA {

inline constexpr int kFloatVectors = static_cast<int>(kGroupValues) * 4 / static_cast<int>(sizeof(Float));
/// Chains of additions at once: enough to hide the latency of a fused multiply-add, and few enough for the
/// registers.
inline constexpr int kFloatTokens = kFloatVectors == 2 ? 4 : 3;

/// The 32 partial sums of one row and one token.
struct FloatLanes {
    Float lanes[kFloatVectors];

    COTERIE_INLINE void clear() {
        COTERIE_UNROLL
        for (int i = 0; i < kFloatVectors; ++i) lanes[i] = zero_float();
    }
    COTERIE_INLINE void add_products(const Float weights[kFloatVectors], const float* values) {
        constexpr int kWidth = static_cast<int>(kGroupValues) / kFloatVectors;
        COTERIE_UNROLL
        for (int i = 0; i < kFloatVectors; ++i) {
            lanes[i] = multiply_add(weights[i], load(values + kWidth * i), lanes[i]);
        }
    }
};

/// The 32 weights from `row` on.
template <class Element>
COTERIE_INLINE void load_weights(const std::byte* row, Float weights[kFloatVectors]) {
    constexpr int kWidth = static_cast<int>(kGroupValues) / kFloatVectors;
    COTERIE_UNROLL
    for (int i = 0; i < kFloatVectors; ++i) weights[i] = Element::load(row + kWidth * i * Element::kBytes);
}

/// One row times kTokens tokens.
template <class Element, int kTokens>
COTERIE_KERNEL void multiply_float_row(const std::byte* row, std::int64_t columns, const ActivationRow* rows,
                                       float* out, std::int64_t out_token_stride) {
    FloatLanes sums[kTokens];
    COTERIE_UNROLL
    for (int t = 0; t < kTokens; ++t) sums[t].clear();
    Float weights[kFloatVectors];
    std::int64_t i = 0;
    for (; i + kGroupValues <= columns; i += kGroupValues) {
        load_weights<Element>(row + i * Element::kBytes, weights);
        prefetch(row + i * Element::kBytes + kFloatPrefetchBytes);
        if constexpr (Element::kBytes == 4) prefetch(row + i * Element::kBytes + kFloatPrefetchBytes + 64);
        COTERIE_UNROLL
        for (int t = 0; t < kTokens; ++t) sums[t].add_products(weights, rows[t].values + i);
    }
    if (i < columns) {
        alignas(64) std::byte padded[kGroupValues * Element::kBytes] = {};
        __builtin_memcpy(padded, row + i * Element::kBytes,
                         static_cast<std::size_t>((columns - i) * Element::kBytes));
        load_weights<Element>(padded, weights);
        COTERIE_UNROLL
        for (int t = 0; t < kTokens; ++t) sums[t].add_products(weights, rows[t].values + i);
    }
    COTERIE_UNROLL
    for (int t = 0; t < kTokens; ++t) out[t * out_token_stride] = sum_of_32_lanes(sums[t].lanes);
}

/// Rows that meet one token together: enough chains of additions, and each activation is loaded once for all.
inline constexpr int kFloatRows = kFloatVectors == 2 ? 4 : 2;

/// kFloatRows rows times one token. Requires: whole groups.
template <class Element>
COTERIE_KERNEL void multiply_float_rows(const std::byte* first, std::int64_t row_bytes, std::int64_t columns,
                                        const float* values, float* out) {
    FloatLanes sums[kFloatRows];
    COTERIE_UNROLL
    for (int r = 0; r < kFloatRows; ++r) sums[r].clear();
    for (std::int64_t i = 0; i < columns; i += kGroupValues) {
        COTERIE_UNROLL
        for (int r = 0; r < kFloatRows; ++r) {
            const std::byte* at = first + r * row_bytes + i * Element::kBytes;
            Float weights[kFloatVectors];
            load_weights<Element>(at, weights);
            prefetch(at + kFloatPrefetchBytes);
            if constexpr (Element::kBytes == 4) prefetch(at + kFloatPrefetchBytes + 64);
            sums[r].add_products(weights, values + i);
        }
    }
    COTERIE_UNROLL
    for (int r = 0; r < kFloatRows; ++r) out[r] = sum_of_32_lanes(sums[r].lanes);
}

/// The weights of each row come from memory once, from the first-level cache for further tokens.
template <class Element>
COTERIE_KERNEL void multiply_floats(const MatmulArgs& args) {
    std::int64_t r = 0;
    if (args.tokens == 1 && args.columns % kGroupValues == 0) {
        for (; r + kFloatRows <= args.rows; r += kFloatRows) {
            multiply_float_rows<Element>(args.weights + r * args.row_bytes, args.row_bytes, args.columns,
                                         args.activations->values, args.out + r);
        }
    }
    for (; r < args.rows; ++r) {
        const std::byte* row = args.weights + r * args.row_bytes;
        std::int64_t t = 0;
        for (; t + kFloatTokens <= args.tokens; t += kFloatTokens) {
            multiply_float_row<Element, kFloatTokens>(row, args.columns, args.activations + t,
                                                      args.out + t * args.out_token_stride + r,
                                                      args.out_token_stride);
        }
        for (; t < args.tokens; ++t) {
            multiply_float_row<Element, 1>(row, args.columns, args.activations + t,
                                           args.out + t * args.out_token_stride + r, args.out_token_stride);
        }
    }
}

struct F32 {
    static constexpr int kBytes = 4;
    COTERIE_INLINE static Float load(const std::byte* p) { return load_floats(p); }
};
struct F16 {
    static constexpr int kBytes = 2;
    COTERIE_INLINE static Float load(const std::byte* p) { return load_halves(p); }
};
struct BF16 {
    static constexpr int kBytes = 2;
    COTERIE_INLINE static Float load(const std::byte* p) { return load_brain_floats(p); }
};

}  // namespace coterie::cpu::matmul::COTERIE_ISA
