#pragma once

#include "kernels/cuda/device/dot.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/quantise.cuh"
#include "kernels/cuda/device/tile_kernels.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// The kernels of a quantised type; each .cu of instances/ makes them for one.
namespace coterie::cuda {

inline constexpr int kMatmulThreads = 128;

/// More threads a row where rows are few or long: what matters is how many reads are under way at once.
/// Measured on an H200 at the shapes of docs/benchmarks.md.
inline constexpr int kManyRows = 16384;
inline constexpr int kLongRow = 3072;

template <int kRowThreads>
inline constexpr int kRowsOfBlock = kMatmulThreads / kRowThreads;

/// block.x: strips of rows of all jobs, one after the other; block.y: kTokens tokens.
template <typename Type, int kTokens, int kRowThreads>
__global__ void __launch_bounds__(kMatmulThreads) matmul(const MatmulArgs args) {
    constexpr int kStrip = kRowsOfBlock<kRowThreads>;
    int strip = static_cast<int>(blockIdx.x);
    int j = 0;
    while (strip >= (args.jobs[j].rows + kStrip - 1) / kStrip) {
        strip -= (args.jobs[j].rows + kStrip - 1) / kStrip;
        ++j;
    }
    const MatmulJob& job = args.jobs[j];
    const int row = strip * kStrip + static_cast<int>(threadIdx.x) / kRowThreads;
    const int readable = min(row, job.rows - 1);
    const unsigned first = blockIdx.y * kTokens;
    const unsigned tokens = min(static_cast<unsigned>(kTokens), static_cast<unsigned>(args.tokens) - first);
    const auto* weights = reinterpret_cast<const std::uint8_t*>(job.weights) + readable * job.row_bytes;
    prefetch(weights, static_cast<unsigned>(job.row_bytes), threadIdx.x % kRowThreads, kRowThreads);
    await_previous();
    float products[kTokens];
    row_products<Type, kTokens, kRowThreads>(weights, static_cast<unsigned>(args.columns) / 32,
                                             args.x.quantised, first, tokens, products);
    if (threadIdx.x % kRowThreads != 0 || row >= job.rows) return;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        if (t >= tokens) break;
        float value = __fmul_rn(products[t], job.scale);
        if (job.bias != nullptr) value = __fadd_rn(value, job.bias[row]);
        job.out[static_cast<std::int64_t>(first + t) * job.out_stride + row] = value;
    }
}

inline constexpr int kExpertRowThreads = 8;
inline constexpr int kFusedThreads = 2 * 32 * kExpertRowThreads;

/// block.x: strips of rows; block.y: pairs; block.z: matrices.
template <typename Type>
__global__ void __launch_bounds__(kMatmulThreads) expert_matmul(const ExpertMatmulArgs args) {
    const int pair = static_cast<int>(blockIdx.y);
    const int matrix = static_cast<int>(blockIdx.z);
    if (!args.slots_known) await_previous();
    const std::uint64_t slot = args.slots[pair];
    if (slot == 0) {
        if (args.slots_known) await_previous();  // the kernel after this one counts on it
        return;
    }
    const int row = static_cast<int>(blockIdx.x) * kRowsOfBlock<kExpertRowThreads> +
                    static_cast<int>(threadIdx.x) / kExpertRowThreads;
    const int readable = min(row, args.rows - 1);
    const auto* weights = reinterpret_cast<const std::uint8_t*>(slot + args.offsets[matrix]);
    if (args.slots_known) {
        prefetch(weights + readable * args.row_bytes, static_cast<unsigned>(args.row_bytes),
                 threadIdx.x % kExpertRowThreads, kExpertRowThreads);
        await_previous();
    }
    float product[1];
    row_products<Type, 1, kExpertRowThreads>(weights + readable * args.row_bytes,
                                             static_cast<unsigned>(args.columns) / 32, args.x.quantised,
                                             static_cast<unsigned>(pair / args.pairs_per_input), 1, product);
    if (threadIdx.x % kExpertRowThreads != 0 || row >= args.rows) return;
    const std::int64_t expert = args.experts[pair];
    float value = product[0];
    if (args.scales[matrix] != nullptr) value = __fmul_rn(value, args.scales[matrix][expert]);
    if (args.biases[matrix] != nullptr)
        value = __fadd_rn(value, args.biases[matrix][expert * args.rows + row]);
    args.out[(static_cast<std::int64_t>(matrix) * args.pairs + pair) * args.out_stride + row] = value;
}

/// Gate and up of one type: out = activation(gate row . x, up row . x), and its quantised form. Half of a
/// block computes gate's rows, the other half up's. block.x: groups of 32 rows; block.y: pairs.
template <typename Type>
__global__ void __launch_bounds__(kFusedThreads) expert_gate_up(const ExpertGateArgs args) {
    await_previous();
    __shared__ float values[2][32];
    const int pair = static_cast<int>(blockIdx.y);
    const std::uint64_t slot = args.slots[pair];
    if (slot == 0) return;
    const int matrix = static_cast<int>(threadIdx.x) / (kFusedThreads / 2);
    const int local = static_cast<int>(threadIdx.x) % (kFusedThreads / 2) / kExpertRowThreads;
    const int row = min(static_cast<int>(blockIdx.x) * 32 + local, args.rows - 1);
    const auto* weights = reinterpret_cast<const std::uint8_t*>(slot + args.offsets[matrix]);
    float product[1];
    row_products<Type, 1, kExpertRowThreads>(weights + row * args.row_bytes,
                                             static_cast<unsigned>(args.columns) / 32, args.x.quantised,
                                             static_cast<unsigned>(pair / args.pairs_per_input), 1, product);
    if (threadIdx.x % kExpertRowThreads == 0) {
        const std::int64_t expert = args.experts[pair];
        float value = product[0];
        if (args.scales[matrix] != nullptr) value = __fmul_rn(value, args.scales[matrix][expert]);
        if (args.biases[matrix] != nullptr)
            value = __fadd_rn(value, args.biases[matrix][expert * args.rows + row]);
        values[matrix][local] = value;
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    const float gate = values[0][lane_index()];
    const float up = values[1][lane_index()];
    const int hidden = static_cast<int>(blockIdx.x) * 32 + lane_index();
    float value = 0.0f;
    if (hidden < args.rows)
        value = args.activation == Gate::SwiGlu ? law_swiglu(gate, up) : law_swiglu_oai(gate, up);
    if (args.out != nullptr && hidden < args.rows) args.out[pair * args.out_stride + hidden] = value;
    store_group(args.quantised, pair, blockIdx.x, value);
}

template <typename Type>
void launch_expert_gate_up(const ExpertGateArgs& args, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>((args.rows + 31) / 32), static_cast<unsigned>(args.pairs));
    launch("expert_gate_up", expert_gate_up<Type>, {grid, kFusedThreads}, stream, args);
}

template <typename Type, int kTokens, int kRowThreads>
void launch_matmul_of(const MatmulArgs& args, StreamHandle stream) {
    constexpr int kStrip = kRowsOfBlock<kRowThreads>;
    unsigned strips = 0;
    for (int j = 0; j < args.count; ++j)
        strips += static_cast<unsigned>((args.jobs[j].rows + kStrip - 1) / kStrip);
    const dim3 grid(strips, static_cast<unsigned>((args.tokens + kTokens - 1) / kTokens));
    launch("matmul", matmul<Type, kTokens, kRowThreads>, {grid, kMatmulThreads}, stream, args);
}

template <typename Type>
void launch_matmul(const MatmulArgs& args, StreamHandle stream) {
    if (args.tokens >= kTileFromTokens) return launch_tile_matmul<Type>(args, stream);
    if (args.tokens > 4) return launch_matmul_of<Type, 8, 16>(args, stream);
    if (args.tokens > 1) return launch_matmul_of<Type, 4, 16>(args, stream);
    std::int64_t rows = 0;
    for (int j = 0; j < args.count; ++j) rows += args.jobs[j].rows;
    if (rows >= kManyRows) return launch_matmul_of<Type, 1, 8>(args, stream);
    if (args.columns >= kLongRow) return launch_matmul_of<Type, 1, 32>(args, stream);
    launch_matmul_of<Type, 1, 16>(args, stream);
}

template <typename Type>
void launch_expert_matmul(const ExpertMatmulArgs& args, StreamHandle stream) {
    if (args.sorted.order != nullptr) return launch_tile_expert_matmul<Type>(args, stream);
    constexpr int kStrip = kRowsOfBlock<kExpertRowThreads>;
    const dim3 grid(static_cast<unsigned>((args.rows + kStrip - 1) / kStrip),
                    static_cast<unsigned>(args.pairs), static_cast<unsigned>(args.matrices));
    launch("expert_matmul", expert_matmul<Type>, {grid, kMatmulThreads}, stream, args);
}

template <typename Type>
constexpr MatmulKernels kernels_of(void (*prepare)() = nullptr) {
    return {launch_matmul<Type>, launch_expert_matmul<Type>, launch_expert_gate_up<Type>, prepare};
}

}  // namespace coterie::cuda
