#pragma once

#include "kernels/cuda/matmul.h"

/// One entry a type, each in its own file because each takes long to compile.
namespace coterie::cuda {

// It would move the list at every run.
// clang-format off
#define COTERIE_FOR_EACH_CUDA_TYPE(X)                                                                     \
    X(F32) X(F16) X(BF16) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) \
    X(IQ4_NL) X(IQ4_XS) X(MXFP4) X(NVFP4) X(Q1_0) X(Q2_0) X(TQ1_0) X(TQ2_0) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S)  \
    X(IQ3_XXS) X(IQ3_S) X(IQ1_S) X(IQ1_M)
// clang-format on

#define COTERIE_DECLARE(Type) extern const MatmulKernels k##Type##Kernels;
COTERIE_FOR_EACH_CUDA_TYPE(COTERIE_DECLARE)
#undef COTERIE_DECLARE

/// What the _M mixtures have side by side in queries, keys and values.
extern const NormedMatmul kQ4_KWithQ6_K;
extern const NormedMatmul kQ5_KWithQ6_K;

}  // namespace coterie::cuda
