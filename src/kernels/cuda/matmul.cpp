#include "kernels/cuda/matmul.h"

#include "kernels/cuda/instances/instances.h"

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

}  // namespace coterie::cuda
