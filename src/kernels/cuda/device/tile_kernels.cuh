#pragma once

#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/tile.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

/// The kernels of a quantised type for many tokens: dense products, and experts' for sorted pairs.
namespace coterie::cuda {

/// Dense products of more tokens go to tiles.
inline constexpr int kTileFromTokens = 17;

template <typename Shape>
__host__ __device__ constexpr int row_strips(int rows) {
    return (rows + Shape::kRows - 1) / Shape::kRows;
}

/// For TileMemory::inputs.
__device__ __forceinline__ std::uint32_t input_of(const ActivationBuffer& x, int row) {
    return static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(x.groups);
}

/// block.x: strips of rows of all jobs, and for each all tiles of tokens, so that weights come from memory
/// once.
template <typename Type, typename Shape>
__global__ void __launch_bounds__(kTileThreads, 2) tile_matmul(const MatmulArgs args) {
    await_previous();
    extern __shared__ uint4 shared[];
    auto& memory = *reinterpret_cast<TileMemory<Type, Shape>*>(shared);
    const int token_tiles = (args.tokens + Shape::kTokens - 1) / Shape::kTokens;
    int strip = static_cast<int>(blockIdx.x) / token_tiles;
    int j = 0;
    while (strip >= row_strips<Shape>(args.jobs[j].rows)) strip -= row_strips<Shape>(args.jobs[j++].rows);
    const MatmulJob& job = args.jobs[j];
    const int first_row = strip * Shape::kRows;
    const int first_token = static_cast<int>(blockIdx.x) % token_tiles * Shape::kTokens;
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kTokens; i += kTileThreads)
        memory.inputs[i] = input_of(args.x.quantised, min(first_token + i, args.tokens - 1));
    __syncthreads();

    const TileRows rows{reinterpret_cast<const std::uint8_t*>(job.weights) + first_row * job.row_bytes,
                        job.row_bytes, min(Shape::kRows, job.rows - first_row),
                        static_cast<unsigned>(args.columns) / 32};
    const int tokens = min(Shape::kTokens, args.tokens - first_token);
    Tile<Type, Shape> tile(memory, rows, args.x.quantised, tokens);
    tile.multiply();
    tile.finish([&](int row, int token, float product) {
        if (row >= rows.count || token >= tokens) return;
        float value = __fmul_rn(product, job.scale);
        if (job.bias != nullptr) value = __fadd_rn(value, job.bias[first_row + row]);
        job.out[static_cast<std::int64_t>(first_token + token) * job.out_stride + first_row + row] = value;
    });
}

/// block.x: strips of rows, and for each all tiles of pairs, of which the last do not exist; block.y:
/// matrices.
template <typename Type, typename Shape>
__global__ void __launch_bounds__(kTileThreads, 2) tile_expert_matmul(const ExpertMatmulArgs args) {
    await_previous();
    extern __shared__ uint4 shared[];
    auto& memory = *reinterpret_cast<TileMemory<Type, Shape>*>(shared);
    const int number = static_cast<int>(blockIdx.x) % args.sorted.most_tiles;
    if (number >= *args.sorted.tile_count) return;
    const PairTile range = args.sorted.tiles[number];
    const int matrix = static_cast<int>(blockIdx.y);
    const int first_row = static_cast<int>(blockIdx.x) / args.sorted.most_tiles * Shape::kRows;
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kTokens; i += kTileThreads)
        memory.inputs[i] = input_of(
            args.x.quantised, args.sorted.order[min(range.first + i, range.end - 1)] / args.pairs_per_input);
    __syncthreads();

    const std::int32_t any_pair = args.sorted.order[range.first];
    const std::int64_t expert = args.experts[any_pair];
    const auto* weights = reinterpret_cast<const std::uint8_t*>(args.slots[any_pair] + args.offsets[matrix]);
    const TileRows rows{weights + first_row * args.row_bytes, args.row_bytes,
                        min(Shape::kRows, args.rows - first_row), static_cast<unsigned>(args.columns) / 32};
    const int tokens = range.end - range.first;
    Tile<Type, Shape> tile(memory, rows, args.x.quantised, tokens);
    tile.multiply();
    const float* scale = args.scales[matrix] != nullptr ? args.scales[matrix] + expert : nullptr;
    const float* bias =
        args.biases[matrix] != nullptr ? args.biases[matrix] + expert * args.rows + first_row : nullptr;
    float* out = args.out + static_cast<std::int64_t>(matrix) * args.pairs * args.out_stride + first_row;
    tile.finish([&](int row, int token, float value) {
        if (row >= rows.count || token >= tokens) return;
        if (scale != nullptr) value = __fmul_rn(value, *scale);
        if (bias != nullptr) value = __fadd_rn(value, bias[row]);
        out[args.sorted.order[range.first + token] * args.out_stride + row] = value;
    });
}

/// What a block may have on every card since compute capability 7.5.
inline constexpr std::size_t kMostSharedBytes = std::size_t{64} << 10;

/// Allows a kernel more shared memory than it gets unasked.
template <typename Kernel>
void allow_shared_memory(Kernel kernel, std::size_t bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          "the shared memory of a tile");
}

template <typename Type>
void launch_tile_matmul(const MatmulArgs& args, StreamHandle stream) {
    using Shape = SquareTile;
    constexpr std::size_t kBytes = sizeof(TileMemory<Type, Shape>);
    static_assert(kBytes <= kMostSharedBytes);
    int strips = 0;
    for (int j = 0; j < args.count; ++j) strips += row_strips<Shape>(args.jobs[j].rows);
    const int token_tiles = (args.tokens + Shape::kTokens - 1) / Shape::kTokens;
    allow_shared_memory(tile_matmul<Type, Shape>, kBytes);
    launch("tile_matmul", tile_matmul<Type, Shape>,
           {dim3(static_cast<unsigned>(strips * token_tiles)), kTileThreads, kBytes, true}, stream, args);
}

template <typename Type, typename Shape>
void launch_tile_expert_matmul_of(const ExpertMatmulArgs& args, StreamHandle stream) {
    constexpr std::size_t kBytes = sizeof(TileMemory<Type, Shape>);
    static_assert(kBytes <= kMostSharedBytes);
    const dim3 grid(static_cast<unsigned>(row_strips<Shape>(args.rows) * args.sorted.most_tiles),
                    static_cast<unsigned>(args.matrices));
    allow_shared_memory(tile_expert_matmul<Type, Shape>, kBytes);
    launch("tile_expert_matmul", tile_expert_matmul<Type, Shape>, {grid, kTileThreads, kBytes, true}, stream,
           args);
}

static_assert(NarrowTile::kTokens == SortedPairs::kNarrow && SquareTile::kTokens == SortedPairs::kWide);
template <typename Type>
void launch_tile_expert_matmul(const ExpertMatmulArgs& args, StreamHandle stream) {
    if (args.sorted.tile_pairs == SortedPairs::kNarrow)
        return launch_tile_expert_matmul_of<Type, NarrowTile>(args, stream);
    launch_tile_expert_matmul_of<Type, SquareTile>(args, stream);
}

}  // namespace coterie::cuda
