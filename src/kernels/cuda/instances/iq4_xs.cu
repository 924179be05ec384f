#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/four_bit_tables.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const MatmulKernels kIQ4_XSKernels = kernels_of<IQ4_XS>();

}  // namespace coterie::cuda
