#include "kernels/cuda/device/codebook.cuh"
#include "kernels/cuda/device/matmul_kernels.cuh"
#include "kernels/cuda/device/types/codebooks.cuh"
#include "kernels/cuda/instances/instances.h"
#include "quant/codebooks/codebooks.h"

namespace coterie::cuda {
namespace {

__device__ std::uint32_t codebook[sizeof(blocks::kIq2SCodebook) / 4];

struct Book {
    static constexpr int kEntryWords = 2;
    __device__ static std::uint32_t word(std::uint32_t entry, unsigned w = 0) {
        return codebook[kEntryWords * entry + w];
    }
};

void prepare() { fill_codebook(codebook, blocks::kIq2SCodebook); }

}  // namespace

const MatmulKernels kIQ2_SKernels = kernels_of<IQ2_S<Book>>(prepare);

}  // namespace coterie::cuda
