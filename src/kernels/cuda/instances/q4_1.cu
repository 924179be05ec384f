#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/legacy.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kQ4_1Kernels = kernels_of<Q4_1>();

}  // namespace coterie::cuda
