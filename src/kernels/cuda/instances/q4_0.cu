#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/legacy.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kQ4_0Kernels = kernels_of<Q4_0>();

}  // namespace coterie::cuda
