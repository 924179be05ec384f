#define COTERIE_TARGET_AVX512

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/small_blocks.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx512 {

void matmul_IQ4_XS(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ4_XS(args);
    multiply<IQ4_XS>(args);
}
void matmul_NVFP4(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_NVFP4(args);
    multiply<NVFP4>(args);
}
void matmul_Q1_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q1_0(args);
    multiply<Q1_0>(args);
}
void matmul_Q2_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q2_0(args);
    multiply<Q2_0>(args);
}

}  // namespace coterie::cpu::matmul::avx512
