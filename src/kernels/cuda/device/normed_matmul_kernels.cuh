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
inline constexpr int kFewestNormedWarps = 8;  ///< of a block
inline constexpr int kMostNormedWarps = 16;
inline constexpr int kNormedQuads = 2;  ///< of four values, that a thread quantises one after the other

/// Warps of a block, for `rows` rows in all: so many that the blocks can run at once, one a multiprocessor.
inline int normed_warps(int rows) {
    const int rows_at_once = kNormedWarpRows * multiprocessors();
    return std::clamp((rows + rows_at_once - 1) / rows_at_once, kFewestNormedWarps, kMostNormedWarps);
}

/// Where a block's inputs lie behind its weights: their quantised form, then the sums they come from.
struct NormedStaging {
    std::uint32_t warp_bytes = 0;  ///< 0: weights are read where they are
    std::uint32_t groups = 0;      ///< a multiple of 4
    std::size_t input_bytes() const { return groups * static_cast<std::size_t>(kNormedGroupBytes); }
};

/// The norm's weights of this thread's quads of the batch that begins with value `batch`; what lies behind
/// the row's end means nothing.
__device__ __forceinline__ void load_norm_weights(const NormedInput& input, int batch,
                                                  float4 (&weights)[kNormedQuads]) {
#pragma unroll
    for (int k = 0; k < kNormedQuads; ++k) {
        const int i = batch + 4 * static_cast<int>(threadIdx.x + k * blockDim.x);
        weights[k] = i < input.width ? *reinterpret_cast<const float4*>(input.weight + i) : float4{};
    }
}

/// This thread's quads of a batch of the normed row, +0 past the row's end, to x.
__device__ __forceinline__ void quantise_batch(const ActivationBuffer& x, int batch, int width,
                                               const float* sums, float factor,
                                               const float4 (&weights)[kNormedQuads]) {
    const int end = (width + 31) / 32 * 32;
#pragma unroll
    for (int k = 0; k < kNormedQuads; ++k) {
        const int i = batch + 4 * static_cast<int>(threadIdx.x + k * blockDim.x);
        if (i / 128 * 128 >= end) break;  // of a warp's 128 values none is in the row
        const float4 sum = i < width ? *reinterpret_cast<const float4*>(sums + i) : float4{};
        const float4 weight = weights[k];
        const auto value = [=](int at, float s, float w) {
            return at < width ? normalised(s, factor, w) : 0.0f;
        };
        const QuantisedQuad quad =
            quantise_quad({value(i, sum.x, weight.x), value(i + 1, sum.y, weight.y),
                           value(i + 2, sum.z, weight.z), value(i + 3, sum.w, weight.w)});
        if (i < end) store_quad(x, 0, i, quad);
    }
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
__global__ void __launch_bounds__(32 * kMostNormedWarps, 2)
    normed_rows(const MatmulArgs args, const NormedInput input, const NormedStaging staging,
                int first_of_second) {
    extern __shared__ uint4 shared_units[];
    auto* memory = reinterpret_cast<std::byte*>(shared_units);
    const int warps = static_cast<int>(blockDim.x) / 32;
    const int strip_rows = warps * kNormedWarpRows;
    int strip = static_cast<int>(blockIdx.x);
    int j = 0;
    while (strip >= (args.jobs[j].rows + strip_rows - 1) / strip_rows) {
        strip -= (args.jobs[j].rows + strip_rows - 1) / strip_rows;
        ++j;
    }
    const MatmulJob& job = args.jobs[j];
    const auto row_bytes = static_cast<std::uint32_t>(job.row_bytes);
    const int wanted_row = strip * strip_rows + warp_index() * kNormedWarpRows;
    const int first_row = min(wanted_row, job.rows - 1);
    const int rows = min(kNormedWarpRows, job.rows - first_row);
    const std::uint8_t* from = reinterpret_cast<const std::uint8_t*>(job.weights) + first_row * job.row_bytes;
    std::byte* place = memory + warp_index() * staging.warp_bytes;
    if (staging.warp_bytes > 0) stage_rows(place, from, row_bytes, rows);
    memory += warps * staging.warp_bytes;
    const ActivationBuffer x = activations_in(memory, 1, staging.groups);
    auto* sums = reinterpret_cast<float*>(memory + staging.groups * ActivationBuffer::kGroupBytes);

    const int groups = (input.width + 31) / 32;
    float4 weights[kNormedQuads];
    load_norm_weights(input, 0, weights);
    await_previous(args, input, staging);
    load_sums<2>(input, 0, sums);
    const float factor = block_norm_factor(input, sums);
#pragma unroll 1
    for (int batch = 0; batch < input.width; batch += 4 * kNormedQuads * static_cast<int>(blockDim.x)) {
        if (batch > 0) load_norm_weights(input, batch, weights);
        quantise_batch(x, batch, input.width, sums, factor, weights);
    }
#pragma unroll 1
    for (int g = static_cast<int>(blockIdx.x) * warps + warp_index(); g < groups;
         g += static_cast<int>(gridDim.x) * warps)
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
    int rows = 0;
    std::uint32_t pitch = 0;
    for (int j = 0; j < args.count; ++j) {
        rows += args.jobs[j].rows;
        pitch = std::max(pitch, staged_pitch(static_cast<std::uint32_t>(args.jobs[j].row_bytes)));
    }
    const int warps = normed_warps(rows);
    const int strip_rows = warps * kNormedWarpRows;
    unsigned strips = 0;
    for (int j = 0; j < args.count; ++j)
        strips += static_cast<unsigned>((args.jobs[j].rows + strip_rows - 1) / strip_rows);
    NormedStaging staging{0, static_cast<std::uint32_t>((args.columns + 127) / 128 * 4)};
    const std::uint64_t warp_bytes = staging_units(std::uint64_t{kNormedWarpRows} * pitch + kStagingUnit - 1);
    std::size_t bytes = staging.input_bytes();
    const std::uint64_t weight_bytes = static_cast<std::uint64_t>(warps) * warp_bytes;
    if (bytes + weight_bytes <= most_shared_bytes()) {
        staging.warp_bytes = static_cast<std::uint32_t>(warp_bytes);
        bytes += weight_bytes;
    }
    launch("normed_matmul", normed_rows<First, Second>,
           {dim3(strips), static_cast<unsigned>(32 * warps), bytes}, stream, args, input, staging,
           first_of_second);
}

}  // namespace coterie::cuda
