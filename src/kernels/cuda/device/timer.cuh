#pragma once

#include <cstdint>

namespace coterie::cuda {

__device__ __forceinline__ std::uint64_t nanoseconds_now() {
    std::uint64_t now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

}  // namespace coterie::cuda
