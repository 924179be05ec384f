#pragma once

#include "kernels/cpu/kernels.h"

/// The products of each instruction set, one function a type; matmul_table.cpp collects them.
#define COTERIE_FOR_BLOCK_TYPES(X) X(Q4_K) X(Q5_K) X(Q6_K)

#define COTERIE_DECLARE_MATMUL(type) void matmul_##type(const MatmulArgs& args);

namespace coterie::cpu::matmul {
namespace avx2 {
COTERIE_FOR_BLOCK_TYPES(COTERIE_DECLARE_MATMUL)
}
}  // namespace coterie::cpu::matmul
