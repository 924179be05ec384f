#pragma once

#include "kernels/cuda/device/dot.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/quantise.cuh"
#include "kernels/cuda/device/reply.cuh"
#include "kernels/cuda/device/staging.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// Down of a token's experts and their sum in one kernel. A block computes some rows of all of the experts,
/// so that their outputs meet in its shared memory.
namespace coterie::cuda {

inline constexpr int kCombineRowThreads = 4;
inline constexpr int kCombineWarpRows = 32 / kCombineRowThreads;
inline constexpr int kCombineExpertWarps = 2;
inline constexpr int kCombineRows = kCombineExpertWarps * kCombineWarpRows;  ///< of a block
inline constexpr int kCombineThreads = 32 * kCombineExpertWarps * kMostCombined;

struct CombineShared {
    float outputs[kMostCombined][kCombineRows];  ///< of the block's rows, by rank
    float weights[kMostCombined];
};

/// Quantises a row for its expert's warps, by these, to row `rank` of x.
__device__ __forceinline__ void quantise_row(const float* values, int columns, const ActivationBuffer& x,
                                             int rank) {
    constexpr int kAhead = 4;  // quads of a lane, asked for at once
    constexpr int kQuads = 32 * kCombineExpertWarps;
    const int first = 4 * (static_cast<int>(threadIdx.x) % kQuads);
#pragma unroll 1
    for (int begin = first; begin / 128 * 128 < columns; begin += 4 * kQuads * kAhead) {
        float4 quads[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            const int i = begin + 4 * kQuads * k;
            quads[k] = i < columns ? *reinterpret_cast<const float4*>(values + i) : float4{};
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            const int i = begin + 4 * kQuads * k;
            if (i / 128 * 128 >= columns) break;
            const QuantisedQuad quad = quantise_quad(quads[k]);
            if (i < columns) store_quad(x, rank, i, quad);
        }
    }
}

/// By one thread of each block: the first of a token asks the host, and tells the others through the
/// device's memory. It is never behind them in the order in which blocks start.
__device__ __forceinline__ void await_reply_together(const CombineArgs& args) {
    const std::uint64_t epoch = epoch_of(args.counters, args.layer);
    volatile std::uint64_t* answered = args.counters.answered;
    if (blockIdx.x > 0) {
        while (*answered < epoch) continue;
        __threadfence_system();
        return;
    }
    const std::uint64_t begin = nanoseconds_now();
    await_reply(args.mailbox, epoch);
    *answered = epoch;
    if (args.counters.times != nullptr) atomicAdd(&args.counters.times->waiting, nanoseconds_now() - begin);
}

/// The rows that the host computed, to where this block's own are; one warp an expert reads them.
__device__ __forceinline__ void fetch_missing(const ExpertMatmulArgs& down, const CombineArgs& args, int pair,
                                              int row, int rank, CombineShared& shared) {
    const bool reads = down.slots[pair] == 0 && warp_index() % kCombineExpertWarps == 0;
    const float* output = nullptr;
    if (reads)
        output = counted_host_output(args.mailbox, down.slots, down.experts, args.out.rows * args.used, pair,
                                     args.out.width);
    if (threadIdx.x == 0) await_reply_together(args);
    __syncthreads();
    const std::uint64_t begin = nanoseconds_now();
    if (reads && lane_index() < kCombineRows && row + lane_index() < args.out.width)
        shared.outputs[rank][lane_index()] = output[row + lane_index()];
    __syncthreads();
    if (args.counters.times != nullptr && blockIdx.x == 0 && threadIdx.x == 0)
        atomicAdd(&args.counters.times->reading, nanoseconds_now() - begin);
}

/// block.x: strips of kCombineRows rows; block.y: tokens. A rank has kCombineExpertWarps warps.
template <typename Type>
__global__ void __launch_bounds__(kCombineThreads)
    expert_combine(const ExpertMatmulArgs down, const CombineArgs args, const Staging staging) {
    extern __shared__ uint4 shared_units[];
    __shared__ CombineShared shared;
    auto* memory = reinterpret_cast<std::byte*>(shared_units);
    const std::int64_t token = blockIdx.y;
    const int rank = warp_index() / kCombineExpertWarps;
    const int pair = static_cast<int>(token) * args.used + rank;
    const int first_in_block = warp_index() % kCombineExpertWarps * kCombineWarpRows;
    const int block_row = static_cast<int>(blockIdx.x) * kCombineRows;
    const int first_row = min(block_row + first_in_block, down.rows - 1);
    const int rows = min(kCombineWarpRows, down.rows - first_row);
    const auto row_bytes = static_cast<std::uint32_t>(down.row_bytes);

    const std::uint64_t slot = down.slots[pair];
    const std::int64_t expert = down.experts[pair];
    const std::uint8_t* weights = nullptr;
    std::byte* place = memory + warp_index() * staging.warp_bytes;
    if (slot != 0) {
        weights = expert_matrix(down, 0, pair, slot) + first_row * down.row_bytes;
        if (staging.warp_bytes > 0) stage_rows(place, weights, row_bytes, rows);
    }
    if (threadIdx.x < args.used) shared.weights[threadIdx.x] = args.weights[token * args.used + threadIdx.x];
    await_previous(down, args, staging);
    const int sum_row = block_row + static_cast<int>(threadIdx.x);
    const bool sums = threadIdx.x < kCombineRows && sum_row < args.out.width;
    float added = 0.0f;
    if (sums && args.shared != nullptr) added = args.shared[token * args.out.stride + sum_row];
    const int local = lane_index() / kCombineRowThreads;
    const int row = min(local, rows - 1);
    const auto groups = static_cast<unsigned>(down.columns) / 32;
    float product[1] = {};
    const ActivationBuffer x = activations_in(memory + blockDim.x / 32 * staging.warp_bytes,
                                              static_cast<unsigned>(args.used), staging.groups);
    if (slot != 0) quantise_row(down.x.values + pair * down.x.value_stride, down.columns, x, rank);
    await_copies();
    __syncthreads();
    if (slot != 0 && staging.warp_bytes > 0) {
        row_products<Type, 1, kCombineRowThreads>(staged_row(place, weights, row_bytes, row), groups, x, rank,
                                                  1, product);
    } else if (slot != 0) {
        row_products<Type, 1, kCombineRowThreads>(WarpRows{weights, row_bytes}.row(row), groups, x, rank, 1,
                                                  product);
    }
    if (slot != 0 && lane_index() % kCombineRowThreads == 0)
        shared.outputs[rank][first_in_block + local] =
            scaled_and_biased(down, 0, expert, first_row + row, product[0]);
    if (__syncthreads_or(slot == 0)) fetch_missing(down, args, pair, block_row, rank, shared);
    if (!sums) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int r = 0; r < args.used; ++r)
        sum = __fmaf_rn(shared.weights[r], shared.outputs[r][threadIdx.x], sum);
    if (args.shared != nullptr) sum = add_shared(args, token, added, sum);
    args.out.data[token * args.out.stride + sum_row] = sum;
}

template <typename Type>
void launch_expert_combine(const ExpertMatmulArgs& down, const CombineArgs& args, StreamHandle stream) {
    const int warps = kCombineExpertWarps * args.used;
    const dim3 grid(static_cast<unsigned>((down.rows + kCombineRows - 1) / kCombineRows),
                    static_cast<unsigned>(args.out.rows));
    StagingPlan plan(down.row_bytes, kCombineWarpRows, warps, args.used, down.columns);
    if (plan.staging.warp_bytes == 0) plan = StagingPlan::of_inputs(args.used, down.columns);
    launch("expert_combine", expert_combine<Type>,
           {grid, static_cast<unsigned>(32 * warps), plan.shared_bytes}, stream, down, args, plan.staging);
}

}  // namespace coterie::cuda
