#define COTERIE_TARGET_AVX2

#include "kernels/cpu/matmul/rows/blocks_of_32.h"
#include "kernels/cpu/matmul/rows/k_quants.h"
#include "kernels/cpu/matmul/rows/rows.h"

namespace coterie::cpu::matmul::avx2 {

void rows_Q4_0(const MatmulArgs& args) { multiply_rows_by_few<RowQ4_0>(args); }
void rows_Q4_1(const MatmulArgs& args) { multiply_rows_by_few<RowQ4_1>(args); }
void rows_Q5_0(const MatmulArgs& args) { multiply_rows_by_few<RowQ5_0>(args); }
void rows_Q5_1(const MatmulArgs& args) { multiply_rows_by_few<RowQ5_1>(args); }
void rows_Q8_0(const MatmulArgs& args) { multiply_rows_by_few<RowQ8_0>(args); }
void rows_IQ4_NL(const MatmulArgs& args) { multiply_rows_by_few<RowIQ4_NL>(args); }
void rows_IQ4_XS(const MatmulArgs& args) { multiply_rows_by_few<RowIQ4_XS>(args); }
void rows_MXFP4(const MatmulArgs& args) { multiply_rows_by_few<RowMXFP4>(args); }
void rows_Q2_K(const MatmulArgs& args) { multiply_rows_by_few<RowQ2_K>(args); }
void rows_Q3_K(const MatmulArgs& args) { multiply_rows_by_few<RowQ3_K>(args); }
void rows_Q4_K(const MatmulArgs& args) { multiply_rows_by_few<RowQ4_K>(args); }
void rows_Q5_K(const MatmulArgs& args) { multiply_rows_by_few<RowQ5_K>(args); }
void rows_Q6_K(const MatmulArgs& args) { multiply_rows_by_few<RowQ6_K>(args); }
void rows_TQ2_0(const MatmulArgs& args) { multiply_rows_by_few<RowTQ2_0>(args); }

}  // namespace coterie::cpu::matmul::avx2
