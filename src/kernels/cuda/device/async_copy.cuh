#pragma once

#include <cstdint>

/// Copies to shared memory that are under way while a kernel does something else.
namespace coterie::cuda {

/// Brings 4, 8 or 16 bytes, aligned so, to shared memory; they are there after `await_copies` and a barrier.
template <int kBytes>
__device__ __forceinline__ void copy_to_shared(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    if constexpr (kBytes == 16) *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
    if constexpr (kBytes == 8) *static_cast<uint2*>(to) = *static_cast<const uint2*>(from);
    if constexpr (kBytes == 4) *static_cast<std::uint32_t*>(to) = *static_cast<const std::uint32_t*>(from);
#else
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    if constexpr (kBytes == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(address), "l"(from)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(kBytes)
                     : "memory");
#endif
}

/// Closes a group of this thread's copies.
__device__ __forceinline__ void close_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits for this thread's groups but the last `kCount`.
template <int kCount>
__device__ __forceinline__ void await_copies_but() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(kCount) : "memory");
#endif
}

/// Waits for all of this thread's.
__device__ __forceinline__ void await_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace coterie::cuda
