#define COTERIE_TARGET_AVX512

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/k_four_five_bits.h"
#include "kernels/cpu/matmul/sources/k_six_bits.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx512 {

void matmul_Q4_K(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q4_K(args);
    multiply<Q4_K>(args);
}
void matmul_Q5_K(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q5_K(args);
    multiply<Q5_K>(args);
}
void matmul_Q6_K(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q6_K(args);
    multiply<Q6_K>(args);
}

}  // namespace coterie::cpu::matmul::avx512
