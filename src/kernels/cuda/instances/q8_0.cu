#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/legacy.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kQ8_0Kernels = kernels_of<Q8_0>();

}  // namespace coterie::cuda
