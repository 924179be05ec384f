#pragma once

#include "kernels/cuda/device/float_numbers.cuh"
#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// Products of F32, F16 and BF16 weights with many tokens: a warp forms those of a few rows with a few
/// tokens, so that a value that was read serves several. The law's 32 lanes are the warp's.
namespace coterie::cuda {

inline constexpr int kFloatTileWarps = 4;
inline constexpr int kFloatTileRows = 4;
inline constexpr int kFloatTileTokens = 8;  ///< of a warp; the block's warps stand side by side
inline constexpr int kFloatTileFromTokens = 5;

/// products[r][t] of rows that may be the same where fewer exist. `value(r, i)` and `x(t, i)` for i < n.
template <typename Value, typename X>
__device__ __forceinline__ void float_tile_products(int n, Value value, X x,
                                                    float (&lanes)[kFloatTileRows][kFloatTileTokens]) {
#pragma unroll 2
    for (int i = lane_index(); i < n; i += 32) {
        float weights[kFloatTileRows];
#pragma unroll
        for (int r = 0; r < kFloatTileRows; ++r) weights[r] = value(r, i);
#pragma unroll
        for (int t = 0; t < kFloatTileTokens; ++t) {
            const float token = x(t, i);
#pragma unroll
            for (int r = 0; r < kFloatTileRows; ++r) lanes[r][t] = __fmaf_rn(weights[r], token, lanes[r][t]);
        }
    }
    const bool filled_up = n % 32 != 0 && lane_index() >= n % 32;
#pragma unroll
    for (int r = 0; r < kFloatTileRows; ++r) {
#pragma unroll
        for (int t = 0; t < kFloatTileTokens; ++t) {
            if (filled_up) lanes[r][t] = __fadd_rn(lanes[r][t], 0.0f);  // turns a lane of -0 into +0
            lanes[r][t] = fold_lanes(lanes[r][t]);
        }
    }
}

/// block.x: strips of rows of all jobs, and for each all tiles of tokens.
template <typename Number>
__global__ void __launch_bounds__(32 * kFloatTileWarps) float_tile_matmul(const MatmulArgs args) {
    await_previous();
    constexpr int kBlockTokens = kFloatTileWarps * kFloatTileTokens;
    const auto strips_of = [](int rows) { return (rows + kFloatTileRows - 1) / kFloatTileRows; };
    const int token_tiles = (args.tokens + kBlockTokens - 1) / kBlockTokens;
    int strip = static_cast<int>(blockIdx.x) / token_tiles;
    int j = 0;
    while (strip >= strips_of(args.jobs[j].rows)) strip -= strips_of(args.jobs[j++].rows);
    const MatmulJob& job = args.jobs[j];
    const int first_row = strip * kFloatTileRows;
    const int first_token =
        static_cast<int>(blockIdx.x) % token_tiles * kBlockTokens + warp_index() * kFloatTileTokens;
    if (first_token >= args.tokens) return;

    const Number* rows[kFloatTileRows];
    const float* inputs[kFloatTileTokens];
#pragma unroll
    for (int r = 0; r < kFloatTileRows; ++r)
        rows[r] =
            reinterpret_cast<const Number*>(job.weights + min(first_row + r, job.rows - 1) * job.row_bytes);
#pragma unroll
    for (int t = 0; t < kFloatTileTokens; ++t)
        inputs[t] = args.x.values + min(first_token + t, args.tokens - 1) * args.x.value_stride;
    float products[kFloatTileRows][kFloatTileTokens] = {};
    float_tile_products(
        args.columns, [&](int r, int i) { return number(rows[r][i]); },
        [&](int t, int i) { return inputs[t][i]; }, products);
#pragma unroll
    for (int t = 0; t < kFloatTileTokens; ++t) {
#pragma unroll
        for (int r = 0; r < kFloatTileRows; ++r) {
            const int row = first_row + r;
            const int token = first_token + t;
            if (lane_index() != t * kFloatTileRows + r || row >= job.rows || token >= args.tokens) continue;
            float value = __fmul_rn(products[r][t], job.scale);
            if (job.bias != nullptr) value = __fadd_rn(value, job.bias[row]);
            job.out[token * job.out_stride + row] = value;
        }
    }
}
static_assert(kFloatTileRows * kFloatTileTokens == 32, "a lane stores one product");

template <typename Number>
void launch_float_tile_matmul(const MatmulArgs& args, StreamHandle stream) {
    constexpr int kBlockTokens = kFloatTileWarps * kFloatTileTokens;
    int strips = 0;
    for (int j = 0; j < args.count; ++j) strips += (args.jobs[j].rows + kFloatTileRows - 1) / kFloatTileRows;
    const int token_tiles = (args.tokens + kBlockTokens - 1) / kBlockTokens;
    launch("float_tile_matmul", float_tile_matmul<Number>,
           {dim3(static_cast<unsigned>(strips * token_tiles)), 32 * kFloatTileWarps, 0, true}, stream, args);
}

}  // namespace coterie::cuda
