#define COTERIE_TARGET_AVX2

#include "kernels/cpu/matmul/instances.h"
#include "kernels/cpu/matmul/row_kernel_avx2.h"
#include "kernels/cpu/matmul/sources/k_four_five_bits.h"
#include "kernels/cpu/matmul/sources/k_six_bits.h"
#include "kernels/cpu/matmul/strip_kernel.h"

namespace coterie::cpu::matmul::avx2 {

template <class Row, class Source>
void multiply_rows_or_strips(const MatmulArgs& args) {
    if (args.tokens == 1) return multiply_one_token<Row>(args);
    multiply<Source>(args);
}

void matmul_Q4_K(const MatmulArgs& args) { multiply_rows_or_strips<RowQ4_K, Q4_K>(args); }
void matmul_Q5_K(const MatmulArgs& args) { multiply_rows_or_strips<RowQ5_K, Q5_K>(args); }
void matmul_Q6_K(const MatmulArgs& args) { multiply_rows_or_strips<RowQ6_K, Q6_K>(args); }

}  // namespace coterie::cpu::matmul::avx2
