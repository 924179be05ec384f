#pragma once

#include "kernels/cpu/kernels.h"

/// Each instruction set's functions other than products and activation quantisers, written into a table.
namespace coterie::cpu {

namespace scalar {
void fill_ops(KernelTable& table);
}
namespace avx2 {
void fill_ops(KernelTable& table);
}
namespace avx512 {
void fill_ops(KernelTable& table);
}

}  // namespace coterie::cpu
