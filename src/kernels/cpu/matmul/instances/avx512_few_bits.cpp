#define COTERIE_TARGET_AVX512

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/k_few_bits.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx512 {

void matmul_Q2_K(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q2_K(args);
    multiply<Q2_K>(args);
}
void matmul_Q3_K(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q3_K(args);
    multiply<Q3_K>(args);
}
void matmul_TQ1_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_TQ1_0(args);
    multiply<TQ1_0>(args);
}
void matmul_TQ2_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_TQ2_0(args);
    multiply<TQ2_0>(args);
}

}  // namespace coterie::cpu::matmul::avx512
