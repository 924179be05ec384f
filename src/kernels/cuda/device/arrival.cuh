#pragma once

#include <cstdint>

namespace coterie::cuda {

/// Whether this block is the last of `count` that come here, all of its threads together; it then sees what
/// the others wrote before, if it reads past the first-level cache (`__ldcg`). `arrived` is zero before the
/// first block and after the last.
__device__ inline bool arrives_last(std::uint32_t& arrived, unsigned count) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&arrived, 1u) + 1 == count;
        if (last) arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

}  // namespace coterie::cuda
