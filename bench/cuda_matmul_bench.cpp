// Times the GPU's products of every type at the shapes of one token of Qwen3-30B-A3B and prints the share of
// a plain read of the same bytes: cuda_matmul_bench [TYPE...]. Weights rotate over more memory than the
// card's cache holds.

#include <algorithm>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <functional>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/matmul.h"
#include "quant/random_blocks.h"

namespace {

using namespace coterie;
using cuda::check;

constexpr std::size_t kPoolBytes = std::size_t{1} << 30;
constexpr int kLaunches = 64;
constexpr int kRepeats = 7;

struct Timer {
    Timer() {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaEventCreate(&begin), "cudaEventCreate");
        check(cudaEventCreate(&end), "cudaEventCreate");
    }
    /// Microseconds of one call, of kLaunches in a graph; the median of kRepeats.
    double microseconds(const std::function<void(int)>& call) {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
        for (int i = 0; i < kLaunches; ++i) call(i);
        check(cudaStreamEndCapture(stream, &graph), "capture");
        check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
        std::vector<float> times;
        for (int i = 0; i < kRepeats + 1; ++i) {
            check(cudaEventRecord(begin, stream), "cudaEventRecord");
            check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
            check(cudaEventRecord(end, stream), "cudaEventRecord");
            check(cudaEventSynchronize(end), "cudaEventSynchronize");
            float milliseconds = 0;
            check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
            if (i > 0) times.push_back(milliseconds);
        }
        cudaGraphExecDestroy(executable);
        cudaGraphDestroy(graph);
        std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
        return 1000.0 * static_cast<double>(times[kRepeats / 2]) / kLaunches;
    }
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
};

template <typename T>
T* allocate(std::size_t count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
    return static_cast<T*>(memory);
}

struct Shape {
    const char* name;
    std::int32_t columns;
    std::int32_t rows;
    std::int32_t tokens;
    int pairs;  ///< 0: dense
    int matrices;
};

constexpr Shape kShapes[] = {
    {"qkv", 2048, 5120, 1, 0, 1},           {"attention out", 4096, 2048, 1, 0, 1},
    {"output", 2048, 151936, 1, 0, 1},      {"experts' gate, up", 2048, 768, 1, 8, 2},
    {"experts' down", 768, 2048, 1, 8, 1},  {"qkv, 4 tokens", 2048, 5120, 4, 0, 1},
    {"qkv, 8 tokens", 2048, 5120, 8, 0, 1},
};

void run(Timer& timer, const DataTypeTraits& type, std::byte* pool, std::byte* input, float* out) {
    const cuda::MatmulKernels& kernels = *cuda::matmul_kernels(type.type);
    if (kernels.prepare != nullptr) kernels.prepare();
    for (const Shape& shape : kShapes) {
        if (shape.columns % type.block_values != 0) continue;
        const std::int64_t bytes = *row_bytes(type.type, shape.columns);
        const std::int64_t matrix = (bytes * shape.rows + 255) / 256 * 256;
        const std::int64_t whole = matrix * std::max(1, shape.pairs) * shape.matrices;
        const std::int64_t places = std::max<std::int64_t>(1, static_cast<std::int64_t>(kPoolBytes) / whole);
        cuda::Activations x;
        x.quantised = cuda::ActivationBuffer::in(input, 8, 128);
        x.values = reinterpret_cast<const float*>(input);
        x.value_stride = 4096;
        std::vector<std::uint64_t> slots;
        for (std::int64_t p = 0; p < places; ++p) {
            for (int i = 0; i < shape.pairs; ++i)
                slots.push_back(
                    reinterpret_cast<std::uint64_t>(pool + p * whole + i * matrix * shape.matrices));
        }
        auto* device_slots = allocate<std::uint64_t>(slots.size() + 1);
        auto* experts = allocate<std::int32_t>(64);
        check(cudaMemcpy(device_slots, slots.data(), slots.size() * 8, cudaMemcpyHostToDevice), "cudaMemcpy");
        const double us = timer.microseconds([&](int i) {
            const std::int64_t place = i % places;
            if (shape.pairs == 0) {
                cuda::MatmulArgs args;
                args.jobs[0] = {pool + place * whole, bytes, shape.rows, 1.0f, nullptr, out, shape.rows};
                args.count = 1;
                args.columns = shape.columns;
                args.tokens = shape.tokens;
                args.x = x;
                return kernels.matmul(args, timer.stream);
            }
            cuda::ExpertMatmulArgs args;
            args.slots = device_slots + place * shape.pairs;
            args.experts = experts;
            args.offsets[1] = static_cast<std::uint64_t>(matrix);
            args.matrices = shape.matrices;
            args.pairs = shape.pairs;
            args.pairs_per_input = shape.pairs;
            args.rows = shape.rows;
            args.columns = shape.columns;
            args.row_bytes = bytes;
            args.x = x;
            args.out = out;
            args.out_stride = shape.rows;
            kernels.expert_matmul(args, timer.stream);
        });
        const double total =
            static_cast<double>(bytes) * shape.rows * std::max(1, shape.pairs) * shape.matrices;
        std::printf("%-8s %-18s %8.2f us %8.0f GB/s\n", std::string(type.name).c_str(), shape.name, us,
                    total / us / 1e3);
        cudaFree(device_slots);
        cudaFree(experts);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Timer timer;
    auto* pool = allocate<std::byte>(kPoolBytes + (std::size_t{400} << 20));
    auto* input = allocate<std::byte>(std::size_t{1} << 22);
    auto* out = allocate<float>(std::size_t{1} << 22);
    std::vector<std::byte> blocks(std::size_t{1} << 24);
    for (const DataTypeTraits& type : all_data_types()) {
        if (cuda::matmul_kernels(type.type) == nullptr) continue;
        bool wanted = argc < 2;
        for (int i = 1; i < argc; ++i) wanted |= type.name == argv[i];
        if (!wanted) continue;
        SplitMix64 random(1);
        const auto count = static_cast<std::int64_t>(blocks.size()) / type.block_bytes;
        RandomBlocks(type.type, 0.05f).fill(random, count, blocks.data());
        const std::size_t whole = static_cast<std::size_t>(count * type.block_bytes);
        for (std::size_t at = 0; at + whole <= kPoolBytes; at += whole)
            check(cudaMemcpy(pool + at, blocks.data(), whole, cudaMemcpyHostToDevice), "cudaMemcpy");
        run(timer, type, pool, input, out);
    }
    return 0;
}
