#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/device/dot.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/staging.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// Products of a single token's row that every block normalises and quantises for itself, while its weights
/// are on their way.
namespace coterie::cuda {

inline constexpr int kNormedRowThreads = 8;
inline constexpr int kNormedWarpRows = 32 / kNormedRowThreads;
inline constexpr int kNormedWarps = 8;
inline constexpr int kNormedThreads = 32 * kNormedWarps;
inline constexpr int kNormedStrip = kNormedWarps * kNormedWarpRows;
inline constexpr int kNormedBatch = 8;  ///< groups that a warp quantises at once

/// Where a block's inputs lie behind its weights: their quantised form, then the sums they come from.
struct NormedStaging {
    std::uint32_t warp_bytes = 0;  ///< 0: weights are read where they are
    std::uint32_t groups = 0;      ///< a multiple of 4
    std::size_t input_bytes() const { return groups * static_cast<std::size_t>(kNormedGroupBytes); }
};

/// Those of groups `first`, `first + 1` ...
__device__ __forceinline__ void load_norm_weights(const NormedInput& input, int first,
                                                  float (&weights)[kNormedBatch]) {
#pragma unroll
    for (int k = 0; k < kNormedBatch; ++k) {
        const int i = 32 * (first + k) + lane_index();
        weights[k] = i < input.width ? input.weight[i] : 0.0f;
    }
}

/// Group `first + k` of the normed row in values[k], +0 past the row's end.
__device__ __forceinline__ void quantise_batch(const ActivationBuffer& x, int first, int groups,
                                               const float (&values)[kNormedBatch]) {
    const QuantisedGroups<kNormedBatch> batch = quantise_groups(values);
#pragma unroll
    for (int k = 0; k < kNormedBatch; ++k) {
        if (first + k >= groups) break;
        x.quants[(first + k) * 32 + lane_index()] = batch.quants[k];
    }
    const int g = first + lane_index();
    if (lane_index() >= kNormedBatch || g >= groups) return;
    const float sum = static_cast<float>(batch.half_sums[0] + batch.half_sums[1]);
    reinterpret_cast<float2*>(x.scales)[g] = {batch.scale, __fmul_rn(batch.scale, sum)};
    reinterpret_cast<short2*>(x.half_sums)[g] = {static_cast<short>(batch.half_sums[0]),
                                                 static_cast<short>(batch.half_sums[1])};
}

template <typename First, typename Second>
__device__ __forceinline__ float normed_product(const std::uint8_t* row, unsigned groups,
                                                const ActivationBuffer& x, bool is_first) {
    float product[1];
    if (std::is_same_v<First, Second> || is_first) {
        row_products<First, 1, kNormedRowThreads>(row, groups, x, 0, 1, product);
    } else {
        row_products<Second, 1, kNormedRowThreads>(row, groups, x, 0, 1, product);
    }
    return product[0];
}

/// block.x: strips of rows of all jobs, one after the other; jobs from `first_of_second` on are of `Second`.
template <typename First, typename Second>
__global__ void __launch_bounds__(kNormedThreads, 4)
    normed_rows(const MatmulArgs args, const NormedInput input, const NormedStaging staging,
                int first_of_second) {
    extern __shared__ uint4 shared_units[];
    auto* memory = reinterpret_cast<std::byte*>(shared_units);
    int strip = static_cast<int>(blockIdx.x);
    int j = 0;
    while (strip >= (args.jobs[j].rows + kNormedStrip - 1) / kNormedStrip) {
        strip -= (args.jobs[j].rows + kNormedStrip - 1) / kNormedStrip;
        ++j;
    }
    const MatmulJob& job = args.jobs[j];
    const auto row_bytes = static_cast<std::uint32_t>(job.row_bytes);
    const int wanted_row = strip * kNormedStrip + warp_index() * kNormedWarpRows;
    const int first_row = min(wanted_row, job.rows - 1);
    const int rows = min(kNormedWarpRows, job.rows - first_row);
    const std::uint8_t* from = reinterpret_cast<const std::uint8_t*>(job.weights) + first_row * job.row_bytes;
    std::byte* place = memory + warp_index() * staging.warp_bytes;
    if (staging.warp_bytes > 0) stage_rows(place, from, row_bytes, rows);
    memory += kNormedWarps * staging.warp_bytes;
    const ActivationBuffer x = activations_in(memory, 1, staging.groups);
    auto* sums = reinterpret_cast<float*>(memory + staging.groups * ActivationBuffer::kGroupBytes);

    const int groups = (input.width + 31) / 32;
    float weights[kNormedBatch];
    load_norm_weights(input, warp_index() * kNormedBatch, weights);
    await_previous();
    load_sums<2>(input, 0, sums);
    const float factor = block_norm_factor(input, sums);
    for (int first = warp_index() * kNormedBatch; first < groups; first += kNormedWarps * kNormedBatch) {
        float values[kNormedBatch];
#pragma unroll
        for (int k = 0; k < kNormedBatch; ++k) {
            const int i = 32 * (first + k) + lane_index();
            values[k] = i < input.width ? normalised(sums[i], factor, weights[k]) : 0.0f;
        }
        quantise_batch(x, first, groups, values);
        load_norm_weights(input, first + kNormedWarps * kNormedBatch, weights);
    }
    for (int g = static_cast<int>(blockIdx.x) * kNormedWarps + warp_index(); g < groups;
         g += static_cast<int>(gridDim.x) * kNormedWarps)
        store_normed_group(input, 0, g, sums, input.weight, factor);
    await_copies();
    __syncthreads();
    const int local = lane_index() / kNormedRowThreads;
    const int near = min(local, rows - 1);
    const auto multiply = [&](const std::uint8_t* rows) {
        return normed_product<First, Second>(rows, static_cast<unsigned>(groups), x, j < first_of_second);
    };
    float value = staging.warp_bytes > 0 ? multiply(staged_row(place, from, row_bytes, near))
                                         : multiply(WarpRows{from, row_bytes}.row(near));
    const int row = wanted_row + local;
    if (threadIdx.x % kNormedRowThreads != 0 || row >= job.rows) return;
    value = __fmul_rn(value, job.scale);
    if (job.bias != nullptr) value = __fadd_rn(value, job.bias[row]);
    job.out[row] = value;
}

template <typename First, typename Second = First>
void launch_normed_matmul(const MatmulArgs& args, const NormedInput& input, int first_of_second,
                          StreamHandle stream) {
    unsigned strips = 0;
    std::uint32_t pitch = 0;
    for (int j = 0; j < args.count; ++j) {
        strips += static_cast<unsigned>((args.jobs[j].rows + kNormedStrip - 1) / kNormedStrip);
        pitch = std::max(pitch, staged_pitch(static_cast<std::uint32_t>(args.jobs[j].row_bytes)));
    }
    NormedStaging staging{0, static_cast<std::uint32_t>((args.columns + 127) / 128 * 4)};
    const std::uint64_t warp_bytes = staging_units(std::uint64_t{kNormedWarpRows} * pitch + kStagingUnit - 1);
    std::size_t bytes = staging.input_bytes();
    if (bytes + kNormedWarps * warp_bytes <= most_shared_bytes()) {
        staging.warp_bytes = static_cast<std::uint32_t>(warp_bytes);
        bytes += kNormedWarps * warp_bytes;
    }
    launch("normed_matmul", normed_rows<First, Second>, {dim3(strips), kNormedThreads, bytes}, stream, args,
           input, staging, first_of_second);
}

}  // namespace coterie::cuda
