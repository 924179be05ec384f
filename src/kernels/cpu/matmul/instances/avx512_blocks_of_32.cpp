#define COTERIE_TARGET_AVX512

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/blocks_of_32.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx512 {

void matmul_Q4_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q4_0(args);
    multiply<Q4_0>(args);
}
void matmul_Q4_1(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q4_1(args);
    multiply<Q4_1>(args);
}
void matmul_Q5_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q5_0(args);
    multiply<Q5_0>(args);
}
void matmul_Q5_1(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q5_1(args);
    multiply<Q5_1>(args);
}
void matmul_Q8_0(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_Q8_0(args);
    multiply<Q8_0>(args);
}
void matmul_IQ4_NL(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ4_NL(args);
    multiply<IQ4_NL>(args);
}
void matmul_MXFP4(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_MXFP4(args);
    multiply<MXFP4>(args);
}

}  // namespace coterie::cpu::matmul::avx512
