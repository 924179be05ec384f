#define COTERIE_TARGET_AVX2

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/k_four_five_bits.h"
#include "kernels/cpu/matmul/sources/k_six_bits.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx2 {

void matmul_Q4_K(const MatmulArgs& args) { multiply<Q4_K>(args); }
void matmul_Q5_K(const MatmulArgs& args) { multiply<Q5_K>(args); }
void matmul_Q6_K(const MatmulArgs& args) { multiply<Q6_K>(args); }

}  // namespace coterie::cpu::matmul::avx2
