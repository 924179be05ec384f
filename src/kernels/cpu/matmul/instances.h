#pragma once

#include "kernels/cpu/kernels.h"

/// The products of each instruction set, one function a type; matmul_table.cpp collects them.
#define COTERIE_FOR_FLOAT_TYPES(X) X(F32) X(F16) X(BF16)
// clang-format off
#define COTERIE_FOR_BLOCK_TYPES(X)                                                    \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL) X(MXFP4)                        \
    X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_XS)                                 \
    X(NVFP4) X(Q1_0) X(Q2_0) X(TQ1_0) X(TQ2_0)                                        \
    X(IQ1_S) X(IQ1_M) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S)
// clang-format on

#define COTERIE_DECLARE_MATMUL(type) void matmul_##type(const MatmulArgs& args);

namespace coterie::cpu::matmul {
namespace avx2 {
COTERIE_FOR_FLOAT_TYPES(COTERIE_DECLARE_MATMUL)
COTERIE_FOR_BLOCK_TYPES(COTERIE_DECLARE_MATMUL)
}  // namespace avx2
namespace avx512 {
COTERIE_FOR_FLOAT_TYPES(COTERIE_DECLARE_MATMUL)
COTERIE_FOR_BLOCK_TYPES(COTERIE_DECLARE_MATMUL)
}  // namespace avx512
}  // namespace coterie::cpu::matmul

#undef COTERIE_DECLARE_MATMUL
