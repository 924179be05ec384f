#include <cstddef>
#include <cstdint>

#include "kernels/cpu/fill_ops.h"
#include "kernels/cpu/immintrin_avx512.h"
#include "kernels/cpu/kernels.h"
#include "kernels/reference/cache_row.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/transcendental_constants.h"

#define COTERIE_ISA avx512
// The region opens before the ops and closes before the table.
// clang-format off
#include "kernels/cpu/target_avx512_begin.h"
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/ops/all_ops.h"
#include "kernels/cpu/target_end.h"
#include "kernels/cpu/ops/fill_table.h"
// clang-format on
