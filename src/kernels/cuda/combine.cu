#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/reply.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/moe.h"

namespace coterie::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kFinishThreads = 1024;

/// Where a token's experts' outputs begin. The host's are asked for by as many threads as there are, because
/// each question goes over the link and back.
__device__ const float* output_of(const CombineArgs& args, std::int64_t pair) {
    if (args.slots[pair] != 0) return args.rows + pair * args.stride;
    return host_output(args.mailbox, pair, args.out.width);
}

/// block.x: columns, block.y: tokens. The host's outputs are read a line a warp.
__global__ void __launch_bounds__(kThreads) combine_kernel(const CombineArgs args) {
    await_previous();
    __shared__ const float* outputs[kMostUsed];
    const std::int64_t token = blockIdx.y;
    const bool missing = args.counters.missing != nullptr && args.counters.missing[args.layer] > 0;
    const bool times = missing && args.counters.times != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
    if (missing) {
        if (threadIdx.x == 0) {
            const std::uint64_t begin = nanoseconds_now();
            await_reply(args.mailbox, epoch_of(args.counters, args.layer));
            if (times) atomicAdd(&args.counters.times->waiting, nanoseconds_now() - begin);
        }
        __syncthreads();
    }
    const std::uint64_t begin = nanoseconds_now();
    const int column = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    const std::int64_t first = token * args.used;
    if (missing) {
        if (threadIdx.x < args.used) outputs[threadIdx.x] = output_of(args, first + threadIdx.x);
        __syncthreads();
    }
    if (column >= args.out.width) return;
    float sum = 0.0f;
    if (missing) {
#pragma unroll 8
        for (int rank = 0; rank < args.used; ++rank)
            sum = __fmaf_rn(args.weights[first + rank], outputs[rank][column], sum);
    } else {
#pragma unroll 8
        for (int rank = 0; rank < args.used; ++rank)
            sum =
                __fmaf_rn(args.weights[first + rank], args.rows[(first + rank) * args.stride + column], sum);
    }
    if (args.shared != nullptr)
        sum = add_shared(args, token, args.shared[token * args.out.stride + column], sum);
    args.out.data[token * args.out.stride + column] = sum;
    if (times) atomicAdd(&args.counters.times->reading, nanoseconds_now() - begin);
}

__global__ void __launch_bounds__(kFinishThreads) finish_kernel(const FinishArgs args) {
    await_previous();
    const std::int64_t total = static_cast<std::int64_t>(args.layers) * args.pairs;
    for (std::int64_t i = threadIdx.x; i < total; i += kFinishThreads) {
        const std::int64_t at = i / args.pairs * args.layer_pairs + i % args.pairs;
        args.mailbox.experts[at] = args.counters.experts[at];
        args.mailbox.weights[at] = args.counters.weights[at];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *args.mailbox.done = *args.counters.step;
}

}  // namespace

void combine(const CombineArgs& args, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>((args.out.width + kThreads - 1) / kThreads),
                    static_cast<unsigned>(args.out.rows));
    launch("combine", combine_kernel, {grid, kThreads}, stream, args);
}

void finish_step(const FinishArgs& args, StreamHandle stream) {
    launch("finish_step", finish_kernel, {dim3(1), kFinishThreads}, stream, args);
}

}  // namespace coterie::cuda
