#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/few_bits.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kTQ1_0Kernels = kernels_of<TQ1_0>();

}  // namespace coterie::cuda
