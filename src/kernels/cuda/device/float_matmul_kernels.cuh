#pragma once

#include <algorithm>

#include "kernels/cuda/device/float_numbers.cuh"
#include "kernels/cuda/device/float_tile_kernels.cuh"
#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/staging.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// The kernels of F32, F16 and BF16 weights: a warp a row, the law's 32 lanes are the warp's.
namespace coterie::cuda {

inline constexpr int kFloatThreads = 128;
inline constexpr int kFloatRows = kFloatThreads / 32;

/// As Staging, with binary32 inputs.
struct FloatStaging {
    std::uint32_t warp_bytes = 0;
    std::uint32_t input_bytes = 0;
};

template <typename Number>
__device__ __forceinline__ float float_row_product(const std::byte* row, int columns, const float* x) {
    const auto* weights = reinterpret_cast<const Number*>(row);
    return warp_dot(
        columns, [=](int i) { return number(weights[i]); }, [=](int i) { return x[i]; });
}

template <typename Number>
__global__ void __launch_bounds__(kFloatThreads)
    float_matmul(const MatmulArgs args, const FloatStaging staging) {
    extern __shared__ uint4 shared_units[];
    int strip = static_cast<int>(blockIdx.x);
    int j = 0;
    while (strip >= (args.jobs[j].rows + kFloatRows - 1) / kFloatRows) {
        strip -= (args.jobs[j].rows + kFloatRows - 1) / kFloatRows;
        ++j;
    }
    const MatmulJob& job = args.jobs[j];
    const int row = strip * kFloatRows + warp_index();
    const std::int64_t token = blockIdx.y;
    const std::byte* weights = job.weights + min(row, job.rows - 1) * job.row_bytes;
    const float* x = args.x.values + token * args.x.value_stride;
    if (staging.warp_bytes > 0) {
        auto* shared = reinterpret_cast<std::byte*>(shared_units);
        std::byte* inputs = shared + kFloatRows * staging.warp_bytes;
        weights =
            reinterpret_cast<const std::byte*>(stage_rows(shared + warp_index() * staging.warp_bytes,
                                                          reinterpret_cast<const std::uint8_t*>(weights),
                                                          static_cast<std::uint32_t>(job.row_bytes), 1)
                                                   .first);
        await_previous();
        copy_units(inputs, reinterpret_cast<const std::byte*>(x), staging.input_bytes,
                   {threadIdx.x, kFloatThreads});
        x = reinterpret_cast<const float*>(inputs);
        await_copies();
        __syncthreads();
    } else {
        await_previous();
    }
    if (row >= job.rows) return;
    float value = float_row_product<Number>(weights, args.columns, x);
    value = __fmul_rn(value, job.scale);
    if (job.bias != nullptr) value = __fadd_rn(value, job.bias[row]);
    if (lane_index() == 0) job.out[token * job.out_stride + row] = value;
}

/// block.x: pairs, which may be many; block.y: strips of rows; block.z: matrices.
template <typename Number>
__global__ void __launch_bounds__(kFloatThreads) float_expert_matmul(const ExpertMatmulArgs args) {
    await_previous();
    const int pair = static_cast<int>(blockIdx.x);
    const int matrix = static_cast<int>(blockIdx.z);
    const std::uint64_t slot = args.slots[pair];
    const int row = static_cast<int>(blockIdx.y) * kFloatRows + warp_index();
    if (slot == 0 || row >= args.rows) return;
    const auto* weights = reinterpret_cast<const std::byte*>(expert_matrix(args, matrix, pair, slot));
    float value =
        float_row_product<Number>(weights + row * args.row_bytes, args.columns,
                                  args.x.values + pair / args.pairs_per_input * args.x.value_stride);
    value = scaled_and_biased(args, matrix, args.experts[pair], row, value);
    if (lane_index() == 0)
        args.out[(static_cast<std::int64_t>(matrix) * args.pairs + pair) * args.out_stride + row] = value;
}

template <typename Number>
void launch_float_matmul(const MatmulArgs& args, StreamHandle stream) {
    if (args.tokens >= kFloatTileFromTokens) return launch_float_tile_matmul<Number>(args, stream);
    unsigned strips = 0;
    std::int64_t row_bytes = 0;
    for (int j = 0; j < args.count; ++j) {
        strips += static_cast<unsigned>((args.jobs[j].rows + kFloatRows - 1) / kFloatRows);
        row_bytes = std::max(row_bytes, args.jobs[j].row_bytes);
    }
    FloatStaging staging{staging_units(static_cast<std::uint64_t>(row_bytes) + 2 * kStagingUnit - 1),
                         staging_units(static_cast<std::uint64_t>(args.columns) * sizeof(float))};
    std::size_t bytes = std::size_t{kFloatRows} * staging.warp_bytes + staging.input_bytes;
    if (bytes > most_shared_bytes()) {
        staging = {};
        bytes = 0;
    }
    launch("float_matmul", float_matmul<Number>,
           {dim3(strips, static_cast<unsigned>(args.tokens)), kFloatThreads, bytes}, stream, args, staging);
}

template <typename Number>
void launch_float_expert_matmul(const ExpertMatmulArgs& args, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>(args.pairs),
                    static_cast<unsigned>((args.rows + kFloatRows - 1) / kFloatRows),
                    static_cast<unsigned>(args.matrices));
    launch("float_expert_matmul", float_expert_matmul<Number>, {grid, kFloatThreads}, stream, args);
}

template <typename Number>
constexpr MatmulKernels float_kernels_of() {
    return {launch_float_matmul<Number>, launch_float_expert_matmul<Number>};
}

}  // namespace coterie::cuda
