#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/four_bit_tables.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kMXFP4Kernels = kernels_of<MXFP4>();

}  // namespace coterie::cuda
