#pragma once

#include <algorithm>

#include "kernels/cuda/device/combine_kernels.cuh"
#include "kernels/cuda/device/dot.cuh"
#include "kernels/cuda/device/normed_matmul_kernels.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/quantise.cuh"
#include "kernels/cuda/device/staging.cuh"
#include "kernels/cuda/device/tile_kernels.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// The kernels of a quantised type; each .cu of instances/ makes them for one.
namespace coterie::cuda {

inline constexpr int kMatmulThreads = 128;

/// More threads a row where rows are few or long: what matters is how soon the last one is done.
/// Measured on an H200 at the shapes of docs/benchmarks.md.
inline constexpr int kManyRows = 16384;
inline constexpr int kLongRow = 3072;

inline constexpr int kMatmulWarps = kMatmulThreads / 32;
template <int kRowThreads>
inline constexpr int kWarpRows = 32 / kRowThreads;

/// block.x: strips of rows of all jobs, one after the other; block.y: kTokens tokens.
template <typename Type, int kTokens, int kRowThreads>
__global__ void __launch_bounds__(kMatmulThreads) matmul(const MatmulArgs args, const Staging staging) {
    extern __shared__ uint4 shared_units[];
    auto* shared = reinterpret_cast<std::byte*>(shared_units);
    constexpr int kRows = kWarpRows<kRowThreads>;
    constexpr int kStrip = kMatmulWarps * kRows;
    int strip = static_cast<int>(blockIdx.x);
    int j = 0;
    while (strip >= (args.jobs[j].rows + kStrip - 1) / kStrip) {
        strip -= (args.jobs[j].rows + kStrip - 1) / kStrip;
        ++j;
    }
    const MatmulJob& job = args.jobs[j];
    const auto row_bytes = static_cast<std::uint32_t>(job.row_bytes);
    const int wanted_row = strip * kStrip + warp_index() * kRows;
    const int first_row = min(wanted_row, job.rows - 1);  // a warp without rows goes along with the last
    const int rows = min(kRows, job.rows - first_row);
    const unsigned first = blockIdx.y * kTokens;
    const unsigned tokens = min(static_cast<unsigned>(kTokens), static_cast<unsigned>(args.tokens) - first);
    const WarpRows weights{reinterpret_cast<const std::uint8_t*>(job.weights) + first_row * job.row_bytes,
                           row_bytes};
    const int local = lane_index() / kRowThreads;
    const auto groups = static_cast<unsigned>(args.columns) / 32;
    float products[kTokens];
    if (staging.warp_bytes > 0) {
        const WarpRows staged =
            stage_rows(shared + warp_index() * staging.warp_bytes, weights.first, row_bytes, rows);
        await_previous(args, staging);
        const ActivationBuffer x =
            stage_inputs<Type::kForm>(shared + kMatmulWarps * staging.warp_bytes, args.x.quantised, first,
                                      tokens, staging.groups, {threadIdx.x, kMatmulThreads});
        await_copies();
        __syncthreads();
        row_products<Type, kTokens, kRowThreads>(staged.row(min(local, rows - 1)), groups, x, 0, tokens,
                                                 products);
    } else {
        await_previous();
        row_products<Type, kTokens, kRowThreads>(weights.row(min(local, rows - 1)), groups, args.x.quantised,
                                                 first, tokens, products);
    }
    const int row = wanted_row + local;
    if (threadIdx.x % kRowThreads != 0 || row >= job.rows) return;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        if (t >= tokens) break;
        float value = __fmul_rn(products[t], job.scale);
        if (job.bias != nullptr) value = __fadd_rn(value, job.bias[row]);
        job.out[static_cast<std::int64_t>(blockIdx.y * kTokens + t) * job.out_stride + row] = value;
    }
}

inline constexpr int kExpertRowThreads = 4;
inline constexpr int kExpertWarpRows = kWarpRows<kExpertRowThreads>;

/// Of gate and of up each, by a warp. Small blocks share out a token's few rows more evenly.
inline constexpr int kGateWarpRows = kExpertWarpRows / 2;
inline constexpr int kGateWarps = 4;
inline constexpr int kGateThreads = 32 * kGateWarps;

/// Which of the two matrices a thread works for, and which of the warp's rows of it.
__device__ __forceinline__ int gate_matrix() { return lane_index() / 16; }
__device__ __forceinline__ int gate_row() { return lane_index() / kExpertRowThreads % kGateWarpRows; }

/// block.x: strips of rows; block.y: pairs; block.z: matrices.
template <typename Type>
__global__ void __launch_bounds__(kMatmulThreads)
    expert_matmul(const ExpertMatmulArgs args, const Staging staging) {
    extern __shared__ uint4 shared_units[];
    auto* shared = reinterpret_cast<std::byte*>(shared_units);
    const int pair = static_cast<int>(blockIdx.y);
    const int matrix = static_cast<int>(blockIdx.z);
    if (!args.slots_known) await_previous();
    const std::uint64_t slot = args.slots[pair];
    if (slot == 0) {
        if (args.slots_known) await_previous();  // the kernel after this one counts on it
        return;
    }
    const auto row_bytes = static_cast<std::uint32_t>(args.row_bytes);
    const int wanted_row = (static_cast<int>(blockIdx.x) * kMatmulWarps + warp_index()) * kExpertWarpRows;
    const int first_row = min(wanted_row, args.rows - 1);
    const int rows = min(kExpertWarpRows, args.rows - first_row);
    const WarpRows weights{expert_matrix(args, matrix, pair, slot) + first_row * args.row_bytes, row_bytes};
    const auto input = static_cast<unsigned>(pair / args.pairs_per_input);
    const int local = lane_index() / kExpertRowThreads;
    const auto groups = static_cast<unsigned>(args.columns) / 32;
    float product[1];
    if (staging.warp_bytes > 0) {
        const WarpRows staged =
            stage_rows(shared + warp_index() * staging.warp_bytes, weights.first, row_bytes, rows);
        if (args.slots_known) await_previous();
        const ActivationBuffer x =
            stage_inputs<Type::kForm>(shared + kMatmulWarps * staging.warp_bytes, args.x.quantised, input, 1,
                                      staging.groups, {threadIdx.x, kMatmulThreads});
        await_copies();
        __syncthreads();
        row_products<Type, 1, kExpertRowThreads>(staged.row(min(local, rows - 1)), groups, x, 0, 1, product);
    } else {
        if (args.slots_known) await_previous();
        row_products<Type, 1, kExpertRowThreads>(weights.row(min(local, rows - 1)), groups, args.x.quantised,
                                                 input, 1, product);
    }
    const int row = wanted_row + local;
    if (threadIdx.x % kExpertRowThreads != 0 || row >= args.rows) return;
    const std::int64_t expert = args.experts[pair];
    const float value = scaled_and_biased(args, matrix, expert, row, product[0]);
    args.out[(static_cast<std::int64_t>(matrix) * args.pairs + pair) * args.out_stride + row] = value;
}

/// The products of a warp's rows of gate and of up, kGateWarpRows each: the inputs and the first parts of the
/// rows are asked for at once, and each part is multiplied while the next ones are on their way. To ask for
/// all of them first would hold up the warp: copies are taken as slowly as memory answers.
template <typename Type>
__device__ __forceinline__ float product_of_parts(const ExpertGateArgs& args, const Staging& staging,
                                                  std::byte* shared, const std::uint8_t* gate,
                                                  const std::uint8_t* up, int count, unsigned input) {
    constexpr int kParts = 4;
    constexpr int kAhead = 2;             // parts
    constexpr unsigned kWholeBlocks = 8;  // groups of a block, at most
    const auto row_bytes = static_cast<std::uint32_t>(args.row_bytes);
    const auto groups = static_cast<unsigned>(args.columns) / 32;
    const unsigned part = (groups + kParts * kWholeBlocks - 1) / (kParts * kWholeBlocks) * kWholeBlocks;
    const auto begin_of = [=](int p) { return min(static_cast<unsigned>(p) * part, groups); };
    const auto bytes_to = [](unsigned group) { return group / Type::kGroups * Type::kBlockBytes; };
    std::byte* const gate_place = shared + 2 * warp_index() * staging.warp_bytes;
    std::byte* const up_place = gate_place + staging.warp_bytes;
    const RowParts parts(gate_place, up_place, gate, up, row_bytes, count);
    const bool in_parts = row_bytes % kStagingUnit == 0;
    const auto ask_for = [&](int p) {
        if (in_parts && p < kParts) parts.ask_for(bytes_to(begin_of(p)), bytes_to(begin_of(p + 1)));
        close_copies();
    };
    const ActivationBuffer x =
        stage_inputs<Type::kForm>(shared + 2 * kGateWarps * staging.warp_bytes, args.x.quantised, input, 1,
                                  staging.groups, {threadIdx.x, kGateThreads});
    if (!in_parts) {
        stage_rows(gate_place, gate, row_bytes, count);
        stage_rows(up_place, up, row_bytes, count);
    }
    close_copies();
#pragma unroll 1
    for (int p = 0; p < kAhead; ++p) ask_for(p);
    await_copies_but<kAhead>();
    __syncthreads();
    const bool is_gate = gate_matrix() == 0;
    const std::uint8_t* row = staged_row(is_gate ? gate_place : up_place, is_gate ? gate : up, row_bytes,
                                         min(gate_row(), count - 1));
    float acc[1] = {};
#pragma unroll 1
    for (int p = 0; p < kParts; ++p) {
        ask_for(p + kAhead);
        await_copies_but<kAhead>();
        __syncwarp();
        const unsigned first_groups[1] = {begin_of(p)};
        add_groups<Type, 1, kExpertRowThreads>(row + bytes_to(begin_of(p)), begin_of(p + 1) - begin_of(p), x,
                                               first_groups, acc);
    }
    return add_accumulators<kExpertRowThreads>(acc[0]);
}

/// Gate and up of one type: out = activation(gate row . x, up row . x). Half of a warp computes gate's rows,
/// the other half up's. block.x: strips of rows; block.y: pairs.
template <typename Type>
__global__ void __launch_bounds__(kGateThreads)
    expert_gate_up(const ExpertGateArgs args, const Staging staging) {
    extern __shared__ uint4 shared_units[];
    auto* shared = reinterpret_cast<std::byte*>(shared_units);
    const int pair = static_cast<int>(blockIdx.y);
    const int wanted_row = (static_cast<int>(blockIdx.x) * kGateWarps + warp_index()) * kGateWarpRows;
    const int first_row = min(wanted_row, args.rows - 1);
    const int count = min(kGateWarpRows, args.rows - first_row);
    const auto input = static_cast<unsigned>(pair / args.pairs_per_input);
    await_previous(args, staging);
    const std::uint64_t slot = args.slots[pair];
    if (slot == 0) return;
    const std::int64_t expert = args.experts[pair];
    const std::uint8_t* gate_rows = expert_matrix(args, 0, pair, slot) + first_row * args.row_bytes;
    const std::uint8_t* up_rows = expert_matrix(args, 1, pair, slot) + first_row * args.row_bytes;
    const int near = min(gate_row(), count - 1);
    float product[1];
    if (staging.warp_bytes > 0) {
        product[0] = product_of_parts<Type>(args, staging, shared, gate_rows, up_rows, count, input);
    } else {
        row_products<Type, 1, kExpertRowThreads>(
            (gate_matrix() == 0 ? gate_rows : up_rows) + near * args.row_bytes,
            static_cast<unsigned>(args.columns) / 32, args.x.quantised, input, 1, product);
    }
    const float gate = scaled_and_biased(args, gate_matrix(), expert, first_row + near, product[0]);
    const float up = __shfl_down_sync(kFullWarp, gate, 16);
    const int row = wanted_row + gate_row();
    if (lane_index() % kExpertRowThreads != 0 || gate_matrix() != 0 || row >= args.rows) return;
    args.out[pair * args.out_stride + row] =
        args.activation == Gate::SwiGlu ? law_swiglu(gate, up) : law_swiglu_oai(gate, up);
}

template <typename Type>
void launch_expert_gate_up(const ExpertGateArgs& args, StreamHandle stream) {
    constexpr int kRows = kGateWarps * kGateWarpRows;
    const dim3 grid(static_cast<unsigned>((args.rows + kRows - 1) / kRows),
                    static_cast<unsigned>(args.pairs));
    const StagingPlan plan(args.row_bytes, kGateWarpRows, 2 * kGateWarps, 1, args.columns);
    launch("expert_gate_up", expert_gate_up<Type>, {grid, kGateThreads, plan.shared_bytes}, stream, args,
           plan.staging);
}

template <typename Type, int kTokens, int kRowThreads>
void launch_matmul_of(const MatmulArgs& args, StreamHandle stream) {
    constexpr int kRows = kWarpRows<kRowThreads>;
    constexpr int kStrip = kMatmulWarps * kRows;
    unsigned strips = 0;
    std::int64_t row_bytes = 0;
    for (int j = 0; j < args.count; ++j) {
        strips += static_cast<unsigned>((args.jobs[j].rows + kStrip - 1) / kStrip);
        row_bytes = std::max(row_bytes, args.jobs[j].row_bytes);
    }
    const dim3 grid(strips, static_cast<unsigned>((args.tokens + kTokens - 1) / kTokens));
    const StagingPlan plan(row_bytes, kRows, kMatmulWarps, std::min(args.tokens, kTokens), args.columns);
    launch("matmul", matmul<Type, kTokens, kRowThreads>, {grid, kMatmulThreads, plan.shared_bytes}, stream,
           args, plan.staging);
}

template <typename Type>
void launch_matmul(const MatmulArgs& args, StreamHandle stream) {
    if (args.tokens >= kTileFromTokens) return launch_tile_matmul<Type>(args, stream);
    if (args.tokens > 4) return launch_matmul_of<Type, 8, 8>(args, stream);
    if (args.tokens > 1) return launch_matmul_of<Type, 4, 8>(args, stream);
    std::int64_t rows = 0;
    for (int j = 0; j < args.count; ++j) rows += args.jobs[j].rows;
    if (rows >= kManyRows) return launch_matmul_of<Type, 1, 4>(args, stream);
    if (args.columns >= kLongRow) return launch_matmul_of<Type, 1, 16>(args, stream);
    launch_matmul_of<Type, 1, 8>(args, stream);
}

template <typename Type>
void launch_expert_matmul(const ExpertMatmulArgs& args, StreamHandle stream) {
    if (args.sorted.order != nullptr) return launch_tile_expert_matmul<Type>(args, stream);
    constexpr int kStrip = kMatmulWarps * kExpertWarpRows;
    const dim3 grid(static_cast<unsigned>((args.rows + kStrip - 1) / kStrip),
                    static_cast<unsigned>(args.pairs), static_cast<unsigned>(args.matrices));
    const StagingPlan plan(args.row_bytes, kExpertWarpRows, kMatmulWarps, 1, args.columns);
    launch("expert_matmul", expert_matmul<Type>, {grid, kMatmulThreads, plan.shared_bytes}, stream, args,
           plan.staging);
}

template <typename Type>
constexpr MatmulKernels kernels_of(void (*prepare)() = nullptr) {
    return {launch_matmul<Type>,         launch_expert_matmul<Type>, launch_expert_gate_up<Type>,
            launch_expert_combine<Type>, launch_normed_matmul<Type>, prepare};
}

}  // namespace coterie::cuda
