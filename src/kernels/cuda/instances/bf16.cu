#include "kernels/cuda/device/float_matmul_kernels.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kBF16Kernels = float_kernels_of<__nv_bfloat16>();

}  // namespace coterie::cuda
