#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/k_quants.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kQ6_KKernels = kernels_of<Q6_K>();

}  // namespace coterie::cuda
