#pragma once

#include <array>

#include "kernels/cpu/kernels.h"

namespace coterie::cpu::matmul::scalar {

/// The law itself, `traits(type).dot`, row by row: for machines without a SIMD set, and what tests compare
/// with.
std::array<MatmulFunction, kDataTypeIds> matmul_table();

}  // namespace coterie::cpu::matmul::scalar
