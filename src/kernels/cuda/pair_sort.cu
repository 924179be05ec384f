#include "kernels/cuda/device/lanes.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/pair_sort.h"

namespace coterie::cuda {
namespace {

/// A thread an expert.
constexpr int kThreads = kMostExperts;
static_assert(kThreads == 1024);

/// Of the values of all threads before this one; `partial` has room for a value a warp.
__device__ int sum_before(int value, int* partial) {
    int sum = value;
#pragma unroll
    for (int width = 1; width < 32; width *= 2) {
        const int below = __shfl_up_sync(kFullWarp, sum, width);
        if (lane_index() >= width) sum += below;
    }
    __syncthreads();
    if (lane_index() == 31) partial[warp_index()] = sum;
    __syncthreads();
    int before = 0;
    for (int w = 0; w < warp_index(); ++w) before += partial[w];
    return before + sum - value;
}

/// One block: counts, places of experts' lists and tiles, then the pairs.
__global__ void __launch_bounds__(kThreads) sort_kernel(const PairSortArgs args) {
    await_previous();
    __shared__ int counts[kThreads];
    __shared__ int partial[kThreads / 32];
    const int expert = static_cast<int>(threadIdx.x);
    counts[expert] = 0;
    __syncthreads();
    for (int p = expert; p < args.pairs; p += kThreads)
        if (args.slots[p] != 0) atomicAdd(&counts[args.experts[p]], 1);
    __syncthreads();

    const int count = counts[expert];
    const int width = args.out.tile_pairs;
    const int tiles = (count + width - 1) / width;
    const int first = sum_before(count, partial);
    const int first_tile = sum_before(tiles, partial);
    for (int t = 0; t < tiles; ++t)
        args.out.tiles[first_tile + t] = {first + t * width, min(first + (t + 1) * width, first + count)};
    if (expert == kThreads - 1) *args.out.tile_count = first_tile + tiles;
    counts[expert] = first;
    __syncthreads();
    for (int p = expert; p < args.pairs; p += kThreads)
        if (args.slots[p] != 0) args.out.order[atomicAdd(&counts[args.experts[p]], 1)] = p;
}

}  // namespace

void sort_pairs(const PairSortArgs& args, StreamHandle stream) {
    launch("sort_pairs", sort_kernel, {dim3(1), kThreads}, stream, args);
}

}  // namespace coterie::cuda
