#define COTERIE_TARGET_AVX512

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/sources/codebook_types.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx512 {

void matmul_IQ1_S(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ1_S(args);
    multiply<IQ1_S>(args);
}
void matmul_IQ1_M(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ1_M(args);
    multiply<IQ1_M>(args);
}
void matmul_IQ2_XXS(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ2_XXS(args);
    multiply<IQ2_XXS>(args);
}
void matmul_IQ2_XS(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ2_XS(args);
    multiply<IQ2_XS>(args);
}
void matmul_IQ2_S(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ2_S(args);
    multiply<IQ2_S>(args);
}
void matmul_IQ3_XXS(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ3_XXS(args);
    multiply<IQ3_XXS>(args);
}
void matmul_IQ3_S(const MatmulArgs& args) {
    if (args.rows < kStripRows) return avx2::matmul_IQ3_S(args);
    multiply<IQ3_S>(args);
}

}  // namespace coterie::cpu::matmul::avx512
