#pragma once

#include <cstdint>

#include "kernels/cuda/check.h"

namespace coterie::cuda {

/// Copies the host's table into a file's own `__device__` array, on the current device.
template <std::size_t kWords, typename Table>
void fill_codebook(const std::uint32_t (&symbol)[kWords], const Table& table) {
    static_assert(sizeof(symbol) == sizeof(table));
    check(cudaMemcpyToSymbol(symbol, table.data(), sizeof(table)), "the copy of a codebook");
}

}  // namespace coterie::cuda
