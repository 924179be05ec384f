#include "kernels/cuda/check.h"

#include "base/error.h"

namespace coterie::cuda {

void check(cudaError_t result, std::string_view call) {
    if (result == cudaSuccess) return;
    const ErrorCode code = result == cudaErrorMemoryAllocation ? ErrorCode::OutOfMemory : ErrorCode::Internal;
    fail(code, "the GPU refused {}: {} ({})", call, cudaGetErrorString(result), cudaGetErrorName(result));
}

}  // namespace coterie::cuda
