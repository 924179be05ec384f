#pragma once

#include <cstdint>

namespace coterie::cuda {

/// Counts up by one; what the counter was. Who comes later sees what this thread has written or, behind a
/// barrier, its block: a fence of every thread would cost more.
__device__ __forceinline__ std::uint32_t arrive(std::uint32_t& counter) {
    std::uint32_t before = 0;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(before) : "l"(&counter) : "memory");
    return before;
}

/// Whether this block is the last of `count` that come here, all of its threads together; it then sees what
/// the others wrote before, if it reads past the first-level cache (`__ldcg`). `arrived` is zero before the
/// first block and after the last.
__device__ inline bool arrives_last(std::uint32_t& arrived, unsigned count) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        last = arrive(arrived) + 1 == count;
        if (last) arrived = 0;
    }
    __syncthreads();
    return last;
}

}  // namespace coterie::cuda
