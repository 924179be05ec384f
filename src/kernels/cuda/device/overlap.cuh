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

}  // namespace coterie::cuda
