#pragma once

#include <span>

#include "kernels/cpu/kernels.h"

namespace coterie::cpu {

/// The start-up test: compares every kernel of `table` bit for bit with the scalar law on random values,
/// products for the given data types (those of the loaded model; types without a dot product are passed
/// over). Takes a few milliseconds per type on one thread.
///
/// Throws Internal with the kernel's and the type's name at the first difference: a machine that computes
/// other bits must not answer.
void self_test(const KernelTable& table, std::span<const DataType> types);

}  // namespace coterie::cpu
