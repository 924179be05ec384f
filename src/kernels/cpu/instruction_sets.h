#pragma once

#include <string_view>

#include "kernels/cpu/kernels.h"

namespace coterie::cpu {

/// From the least to the most capable.
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::Scalar, InstructionSet::Avx2,
                                                      InstructionSet::Avx512};

/// "scalar", "avx2", "avx512".
std::string_view name_of(InstructionSet set);

/// Whether this machine and its operating system run the set's kernels.
bool machine_has(InstructionSet set);

}  // namespace coterie::cpu
