#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/overlap.cuh"
#include "kernels/cuda/device/rotate.cuh"
#include "kernels/cuda/device/transcendental.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_ops.h"

namespace coterie::cuda {
namespace {

constexpr int kNormThreads = 1024;
constexpr int kRowThreads = 256;
constexpr int kEarlyGroups = 4;  ///< of a warp, whose weights are read before the kernel ahead has ended

/// One block a run. The sum of squares is one warp's: its lanes are the law's.
__global__ void __launch_bounds__(kNormThreads) norm_kernel(const NormArgs args) {
    extern __shared__ float values[];
    constexpr int kWarps = kNormThreads / 32;
    float early[kEarlyGroups];
#pragma unroll
    for (int k = 0; k < kEarlyGroups; ++k) {
        const int i = 32 * (warp_index() + k * kWarps) + lane_index();
        early[k] = i < args.run ? args.weight[i] : 0.0f;
    }
    await_previous(args);
    __shared__ float factor;
    const std::int64_t begin = blockIdx.y * args.x.stride + blockIdx.x * args.run;
    for (int i = static_cast<int>(threadIdx.x); i < args.run; i += kNormThreads) {
        float value = args.x.data[begin + i];
        if (args.y != nullptr) {
            value = __fadd_rn(value, args.y[begin + i]);
            args.x.data[begin + i] = value;
        }
        values[i] = value;
    }
    __syncthreads();
    if (warp_index() == 0) {
        const float found = norm_factor(values, args.run, args.epsilon);
        if (lane_index() == 0) factor = found;
    }
    __syncthreads();
    const float r = factor;
#pragma unroll kEarlyGroups
    for (int k = 0; 32 * (warp_index() + k * kWarps) < args.run; ++k) {
        const int g = warp_index() + k * kWarps;
        const int i = 32 * g + lane_index();
        const bool inside = i < args.run;
        const float weight = k < kEarlyGroups ? early[k] : inside ? args.weight[i] : 0.0f;
        const float value = inside ? normalised(values[i], r, weight) : 0.0f;
        if (inside) args.out[begin + i] = value;
        if (args.quantised.quants != nullptr) store_group(args.quantised, blockIdx.y, g, value);
    }
}

__global__ void __launch_bounds__(kRowThreads) add_kernel(const Rows x, const float* y) {
    await_previous();
    const int i = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
    if (i >= x.width) return;
    const std::int64_t index = blockIdx.y * x.stride + i;
    x.data[index] = __fadd_rn(x.data[index], y[index]);
}

__global__ void __launch_bounds__(kRowThreads) quantise_kernel(const Rows x, const ActivationBuffer out) {
    await_previous();
    const int i = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
    const int group = i / 32;
    if (32 * group >= x.width) return;
    const float value = i < x.width ? x.data[blockIdx.y * x.stride + i] : 0.0f;
    store_group(out, blockIdx.y, group, value);
}

__global__ void __launch_bounds__(kRowThreads) gate_kernel(const GateArgs args) {
    await_previous();
    if (args.used != nullptr && args.used[blockIdx.y] == 0) return;
    const int i = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
    if (i / 32 * 32 >= args.gate.width) return;
    float value = 0.0f;
    if (i < args.gate.width) {
        const std::int64_t index = blockIdx.y * args.gate.stride + i;
        const float g = args.gate.data[index];
        value = args.activation == Gate::SwiGlu ? law_swiglu(g, args.up[index])
                                                : law_swiglu_oai(g, args.up[index]);
        if (args.keeps_values) args.gate.data[index] = value;
    }
    if (args.quantised.quants != nullptr) store_group(args.quantised, blockIdx.y, i / 32, value);
}

__global__ void __launch_bounds__(kRowThreads) rotate_kernel(const RotationArgs args) {
    await_previous();
    const int runs = args.x.width / args.run;
    const int index = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
    if (index >= runs * args.pairs) return;
    float* run = args.x.data + blockIdx.y * args.x.stride + index / args.pairs * args.run + args.offset;
    const int pair = index % args.pairs;
    const std::int64_t angle = static_cast<std::int64_t>(blockIdx.y) * args.pairs + pair;
    rotate_pair(run, pair, args.pairs, args.style, args.cosines[angle], args.sines[angle]);
}

__global__ void __launch_bounds__(kRowThreads)
    gather_kernel(const Rows x, const std::int32_t* indices, float* out) {
    await_previous();
    const int i = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
    if (i < x.width) out[blockIdx.y * x.stride + i] = x.data[indices[blockIdx.y] * x.stride + i];
}

dim3 grid_over(std::int64_t columns, std::int64_t rows) {
    return {static_cast<unsigned>((columns + kRowThreads - 1) / kRowThreads), static_cast<unsigned>(rows)};
}

}  // namespace

void rms_norm(const NormArgs& args, StreamHandle stream) {
    const dim3 grid(static_cast<unsigned>(args.x.width / args.run), static_cast<unsigned>(args.x.rows));
    launch("rms_norm", norm_kernel, {grid, kNormThreads, static_cast<std::size_t>(args.run) * sizeof(float)},
           stream, args);
}

void add(const Rows& x, const float* y, StreamHandle stream) {
    launch("add", add_kernel, {grid_over(x.width, x.rows), kRowThreads}, stream, x, y);
}

void quantise(const Rows& x, const ActivationBuffer& out, StreamHandle stream) {
    launch("quantise", quantise_kernel, {grid_over((x.width + 31) / 32 * 32, x.rows), kRowThreads}, stream, x,
           out);
}

void gate(const GateArgs& args, StreamHandle stream) {
    launch("gate", gate_kernel, {grid_over((args.gate.width + 31) / 32 * 32, args.gate.rows), kRowThreads},
           stream, args);
}

void rotate(const RotationArgs& args, StreamHandle stream) {
    const std::int64_t pairs = static_cast<std::int64_t>(args.x.width / args.run) * args.pairs;
    launch("rotate", rotate_kernel, {grid_over(pairs, args.x.rows), kRowThreads}, stream, args);
}

void gather(const Rows& x, const std::int32_t* indices, std::int32_t count, float* out, StreamHandle stream) {
    launch("gather", gather_kernel, {grid_over(x.width, count), kRowThreads}, stream, x, indices, out);
}

}  // namespace coterie::cuda
