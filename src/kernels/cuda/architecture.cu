#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {
namespace {

__global__ void nothing_kernel() {}

}  // namespace

int compiled_capability() {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, nothing_kernel), "cudaFuncGetAttributes");
    return attributes.ptxVersion;
}

}  // namespace coterie::cuda
