#include "kernels/cuda/matmul.h"

#include "kernels/cuda/instances/instances.h"
#include "kernels/cuda/launch.h"

namespace coterie::cuda {

const MatmulKernels* matmul_kernels(DataType type) {
    switch (type) {
#define COTERIE_CASE(Type) \
    case DataType::Type:   \
        return &k##Type##Kernels;
        COTERIE_FOR_EACH_CUDA_TYPE(COTERIE_CASE)
#undef COTERIE_CASE
        default:
            return nullptr;
    }
}

bool takes_normed(std::int32_t width) {
    const std::int64_t groups = (static_cast<std::int64_t>(width) + 127) / 128 * 4;
    return width <= kLongestNorm &&
           static_cast<std::uint64_t>(groups * kNormedGroupBytes) <= most_shared_bytes();
}

bool takes_combined(DataType type, std::int64_t used, std::int64_t columns) {
    const MatmulKernels* kernels = matmul_kernels(type);
    if (kernels == nullptr || kernels->expert_combine == nullptr || used > kMostCombined) return false;
    const std::int64_t groups = (columns + 127) / 128 * 4;
    return static_cast<std::uint64_t>(ActivationBuffer::bytes(used, groups)) <= most_shared_bytes();
}

NormedMatmul normed_matmul(DataType first, DataType second) {
    if (first == second) {
        const MatmulKernels* kernels = matmul_kernels(first);
        return kernels != nullptr ? kernels->normed_matmul : nullptr;
    }
    if (second != DataType::Q6_K) return nullptr;
    if (first == DataType::Q4_K) return kQ4_KWithQ6_K;
    return first == DataType::Q5_K ? kQ5_KWithQ6_K : nullptr;
}

}  // namespace coterie::cuda
