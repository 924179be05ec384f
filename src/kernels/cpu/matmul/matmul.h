#pragma once

#include <array>

#include "kernels/cpu/kernels.h"

/// Products of quantised and float weight rows with a few or many tokens, and the quantisation of those
/// tokens.
///
/// On SIMD one lane owns one row: 8 (AVX2) or 16 (AVX-512) neighbouring rows are one strip, and a 32-bit lane
/// holds four codes of its row. So every row's sum is formed in the order of the law
/// (docs/canonical-arithmetic.md) and no horizontal sums are needed. One or two tokens would not pay for the
/// transposition; their rows are read as they lie in memory (rows/).
namespace coterie::cpu {

using QuantiseActivationFunction = void (*)(const float* values, std::int64_t columns,
                                            const QuantisedActivation& out);

/// Indexed by type id; null where the type has no dot product. The caller makes sure that the machine has the
/// set.
std::array<MatmulFunction, kDataTypeIds> matmul_table(InstructionSet set);

QuantiseActivationFunction quantise_activation_for(InstructionSet set);

}  // namespace coterie::cpu
