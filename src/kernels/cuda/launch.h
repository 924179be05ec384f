#pragma once

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <string_view>
#include <utility>

#include "kernels/cuda/check.h"

namespace coterie::cuda {

/// The compute capability that the kernels for the current GPU were compiled for, times ten. Less than its
/// own where the driver made them from the code for an older one.
int compiled_capability();

/// Whether the current GPU can start a kernel before the one ahead of it has ended, and the kernels wait for
/// that (compute capability 9.0).
bool overlaps_launches();

/// Whether it multiplies matrices of binary16 (compute capability 8.0).
bool has_half_matrices();

/// Of the current GPU.
int multiprocessors();

/// Of shared memory, for one block; not more than leaves room for a second block.
std::uint64_t most_shared_bytes();
/// What a launch may take besides the kernel's own static memory: 48 KiB together, of which no kernel here
/// has more than a third for itself.
inline constexpr std::size_t kSharedWithoutAsking = 32 * 1024;

struct LaunchShape {
    dim3 grid;
    unsigned threads;
    std::size_t shared_bytes = 0;
    bool lives_on_cache = false;  ///< the first-level one, which `prefer_shared_memory` would take
};

/// Lets a kernel of the current GPU have its multiprocessors' memory as shared memory, as far as it can be:
/// where two kernels want it cut in different ways, the second cannot start before the first has ended.
void prefer_shared_memory(const void* kernel);

/// Queues a kernel that begins with `await_previous` (device/overlap.cuh), so that its start may overlap the
/// end of the kernel before it.
template <typename... Parameters, typename... Arguments>
void launch(std::string_view name, void (*kernel)(Parameters...), const LaunchShape& shape,
            cudaStream_t stream, Arguments&&... arguments) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid;
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps_launches() ? 1 : 0;
    if (!shape.lives_on_cache) prefer_shared_memory(reinterpret_cast<const void*>(kernel));
    if (shape.shared_bytes > kSharedWithoutAsking) {
        // Never less than another launch of the kernel in the same graph was given.
        const auto most = std::max<std::uint64_t>(shape.shared_bytes, most_shared_bytes());
        check(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)),
            name);
    }
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), name);
}

}  // namespace coterie::cuda
