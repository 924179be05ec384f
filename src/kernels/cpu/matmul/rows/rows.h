#pragma once

#include "kernels/cpu/kernels.h"

/// Products with one token or very few, a row at a time, for machines with AVX2. Weights of one token come
/// from memory, which 256-bit vectors keep busy, so machines with AVX-512 use them too.
// clang-format off
#define COTERIE_FOR_ROW_TYPES(X)                                                      \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL) X(MXFP4)                        \
    X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_XS) X(TQ2_0)                        \
    X(IQ1_S) X(IQ1_M) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S)
// clang-format on

#define COTERIE_DECLARE_ROWS(type) void rows_##type(const MatmulArgs& args);

namespace coterie::cpu::matmul::avx2 {
COTERIE_FOR_ROW_TYPES(COTERIE_DECLARE_ROWS)
}  // namespace coterie::cpu::matmul::avx2

#undef COTERIE_DECLARE_ROWS
