#pragma once

#include <cstdint>

/// A kernel may start while the one before it still runs (launch.h). Every kernel calls `await_previous`
/// before it reads what that one writes, or writes what it reads; what was written two kernels ago is there
/// before the call, because the kernel between has made it too.
namespace coterie::cuda {

__device__ __forceinline__ void await_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Asks for bytes that will be read: into the second-level cache, by `threads` threads together.
__device__ __forceinline__ void prefetch(const std::uint8_t* begin, unsigned bytes, unsigned thread,
                                         unsigned threads) {
    constexpr unsigned kLine = 128;
    for (unsigned at = thread * kLine; at < bytes; at += threads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(begin + at));
}

}  // namespace coterie::cuda
