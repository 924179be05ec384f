#include "kernels/cuda/check.h"

#include "base/error.h"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {

void check(cudaError_t result, std::string_view call) {
    if (result == cudaSuccess) return;
    const ErrorCode code = result == cudaErrorMemoryAllocation ? ErrorCode::OutOfMemory : ErrorCode::Internal;
    fail(code, "the GPU refused {}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result));
}

bool overlaps_launches() {
    thread_local int asked_device = -1;
    thread_local bool overlaps = false;
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (device != asked_device) {
        int major = 0;
        check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "cudaDeviceGetAttribute");
        asked_device = device;
        overlaps = major >= 9;
    }
    return overlaps;
}

}  // namespace coterie::cuda
