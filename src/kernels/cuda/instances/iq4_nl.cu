#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/four_bit_tables.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kIQ4_NLKernels = kernels_of<IQ4_NL>();

}  // namespace coterie::cuda
