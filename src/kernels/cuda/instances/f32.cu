#include "kernels/cuda/device/float_matmul_kernels.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kF32Kernels = float_kernels_of<float>();

}  // namespace coterie::cuda
