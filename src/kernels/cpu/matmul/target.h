#pragma once

// The vectors and integer sums of the instruction set for which a translation unit is compiled. It says which
// one by a definition above its includes; so the shared kernel headers are compiled once for each set, in a
// namespace of its own.

#if defined(COTERIE_TARGET_AVX512)
#include "kernels/cpu/matmul/group_sum_avx512.h"
#elif defined(COTERIE_TARGET_AVX2)
#include "kernels/cpu/matmul/group_sum_avx2.h"
#else
#error "define COTERIE_TARGET_AVX2 or COTERIE_TARGET_AVX512"
#endif
