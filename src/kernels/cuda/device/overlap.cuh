#pragma once

#include <cstdint>

/// A kernel may start while the one before it still runs (launch.h). Every kernel calls `await_previous`
/// before it reads what that one writes, or writes what it reads; what was written two kernels ago is there
/// before the call, because the kernel between has made it too.
namespace coterie::cuda {

/// A mixture of words of a kernel's parameter, one of each line of the constant cache.
template <typename Parameter>
__device__ __forceinline__ std::uint32_t words_of_lines(const Parameter& parameter) {
    constexpr unsigned kLineWords = 8;
    const auto* words = reinterpret_cast<const std::uint32_t*>(&parameter);
    std::uint32_t mixed = 0;
#pragma unroll
    for (unsigned i = 0; i < sizeof(Parameter) / 4; i += kLineWords) mixed ^= words[i];
    return mixed;
}

/// `parameters`: those that are read later. The first look at each of their lines goes to memory, so it is
/// better taken while the kernel waits anyway.
template <typename... Parameters>
__device__ __forceinline__ void await_previous(const Parameters&... parameters) {
#if __CUDA_ARCH__ >= 900
    constexpr std::uint32_t kHardlyEver = 0x9e3779b9;  // so that the compiler keeps the looks
    if ((0u ^ ... ^ words_of_lines(parameters)) == kHardlyEver) __nanosleep(1);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace coterie::cuda
