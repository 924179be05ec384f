#define COTERIE_TARGET_AVX2

#include "kernels/cpu/matmul/float_rows.h"
#include "kernels/cpu/matmul/instances.h"

namespace coterie::cpu::matmul::avx2 {

void matmul_F32(const MatmulArgs& args) { multiply_floats<F32>(args); }
void matmul_F16(const MatmulArgs& args) { multiply_floats<F16>(args); }
void matmul_BF16(const MatmulArgs& args) { multiply_floats<BF16>(args); }

}  // namespace coterie::cpu::matmul::avx2
