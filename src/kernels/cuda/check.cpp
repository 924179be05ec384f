#include "kernels/cuda/check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {

void check(cudaError_t result, std::string_view call) {
    if (result == cudaSuccess) return;
    const ErrorCode code = result == cudaErrorMemoryAllocation ? ErrorCode::OutOfMemory : ErrorCode::Internal;
    fail(code, "the GPU refused {}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result));
}

namespace {

/// Of the current device.
struct DeviceLimits {
    int device = -1;
    int major = 0;
    bool overlaps_launches = false;
    int multiprocessors = 0;
    int shared_of_multiprocessor = 0;
    int shared_of_block = 0;
};

const DeviceLimits& limits() {
    thread_local DeviceLimits asked;
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (device == asked.device) return asked;
    const auto attribute = [device](cudaDeviceAttr name) {
        int value = 0;
        check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
        return value;
    };
    const int major = attribute(cudaDevAttrComputeCapabilityMajor);
    asked = {device,
             major,
             major >= 9 && compiled_capability() >= 90,
             attribute(cudaDevAttrMultiProcessorCount),
             attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
             attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)};
    return asked;
}

}  // namespace

void prefer_shared_memory(const void* kernel) {
    thread_local std::set<std::pair<int, const void*>> done;
    if (!done.emplace(limits().device, kernel).second) return;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "a preference for shared memory");
}

bool overlaps_launches() { return limits().overlaps_launches; }

int multiprocessors() { return limits().multiprocessors; }

bool has_half_matrices() { return limits().major >= 8; }

std::uint64_t most_shared_bytes() {
    constexpr int kReserved = 1024;  // that the system takes of each block
    return static_cast<std::uint64_t>(
        std::min(limits().shared_of_block, limits().shared_of_multiprocessor / 2 - kReserved));
}

}  // namespace coterie::cuda
