#define COTERIE_TARGET_AVX2

#include "kernels/cpu/matmul/rows/codebooks.h"
#include "kernels/cpu/matmul/rows/rows.h"

namespace coterie::cpu::matmul::avx2 {

void rows_IQ1_S(const MatmulArgs& args) { multiply_rows_by_few<RowIQ1_S>(args); }
void rows_IQ1_M(const MatmulArgs& args) { multiply_rows_by_few<RowIQ1_M>(args); }
void rows_IQ2_XXS(const MatmulArgs& args) { multiply_rows_by_few<RowIQ2_XXS>(args); }
void rows_IQ2_XS(const MatmulArgs& args) { multiply_rows_by_few<RowIQ2_XS>(args); }
void rows_IQ2_S(const MatmulArgs& args) { multiply_rows_by_few<RowIQ2_S>(args); }
void rows_IQ3_XXS(const MatmulArgs& args) { multiply_rows_by_few<RowIQ3_XXS>(args); }
void rows_IQ3_S(const MatmulArgs& args) { multiply_rows_by_few<RowIQ3_S>(args); }

}  // namespace coterie::cpu::matmul::avx2
