#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/four_bit_tables.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kNVFP4Kernels = kernels_of<NVFP4>();

}  // namespace coterie::cuda
