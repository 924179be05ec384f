#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/k_quants.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kQ2_KKernels = kernels_of<Q2_K>();

}  // namespace coterie::cuda
