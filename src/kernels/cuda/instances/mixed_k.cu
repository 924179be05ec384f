#include "kernels/cuda/device/normed_matmul_kernels.cuh"
#include "kernels/cuda/device/types/k_quants.cuh"
#include "kernels/cuda/instances/instances.h"

namespace coterie::cuda {

const NormedMatmul kQ4_KWithQ6_K = launch_normed_matmul<Q4_K, Q6_K>;
const NormedMatmul kQ5_KWithQ6_K = launch_normed_matmul<Q5_K, Q6_K>;

}  // namespace coterie::cuda
