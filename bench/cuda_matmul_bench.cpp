// Times the GPU's products of every type at the shapes of Qwen3-30B-A3B, of few tokens and of a prompt's 512,
// and prints the rate of weights read and of integer operations: cuda_matmul_bench [TYPE...]. Weights rotate
// over more memory than the card's cache holds.

#include <algorithm>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/pair_sort.h"
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
    int experts;  ///< that the pairs share; 0: each has its own
};
constexpr int kMostTokens = 512;
constexpr int kUsed = 8;
constexpr std::int64_t kMostPairs = std::int64_t{kMostTokens} * kUsed;

constexpr Shape kShapes[] = {
    {"qkv", 2048, 5120, 1, 0, 1, 0},
    {"attention out", 4096, 2048, 1, 0, 1, 0},
    {"output", 2048, 151936, 1, 0, 1, 0},
    {"experts' gate, up", 2048, 768, 1, 8, 2, 0},
    {"experts' down", 768, 2048, 1, 8, 1, 0},
    {"qkv, 4 tokens", 2048, 5120, 4, 0, 1, 0},
    {"qkv, 8 tokens", 2048, 5120, 8, 0, 1, 0},
    {"qkv, prompt", 2048, 5120, 512, 0, 1, 0},
    {"attention out, prompt", 4096, 2048, 512, 0, 1, 0},
    {"router, prompt", 2048, 128, 512, 0, 1, 0},
    {"gate, up, prompt", 2048, 768, 512, 512 * kUsed, 2, 128},
    {"down, prompt", 768, 2048, 512, 512 * kUsed, 1, 128},
};

/// Which expert a pair wants: some more often than others, as routers do.
std::vector<std::int32_t> choice(const Shape& shape) {
    std::vector<std::int32_t> experts(static_cast<std::size_t>(std::max(1, shape.pairs)), 0);
    SplitMix64 random(3);
    for (std::int32_t& expert : experts) {
        const float share = random.next_float();
        if (shape.experts > 0)
            expert =
                static_cast<std::int32_t>(share * (0.5f + 0.5f * share) * static_cast<float>(shape.experts));
    }
    return experts;
}

/// A shape's pairs on the device, each with the address of its weights.
struct Pairs {
    Pairs(const Shape& shape, const std::byte* pool, std::int64_t places, std::int64_t whole,
          std::int64_t expert_bytes);
    ~Pairs();
    Pairs(const Pairs&) = delete;
    Pairs& operator=(const Pairs&) = delete;

    std::uint64_t* slots;  ///< [places][pairs]
    std::int32_t* experts;
    cuda::SortedPairs sorted;  ///< of the first place; the order is the same for all
};

Pairs::Pairs(const Shape& shape, const std::byte* pool, std::int64_t places, std::int64_t whole,
             std::int64_t expert_bytes) {
    const std::vector<std::int32_t> chosen = choice(shape);
    std::vector<std::uint64_t> addresses;
    for (std::int64_t place = 0; place < places; ++place) {
        for (int p = 0; p < shape.pairs; ++p) {
            const std::int64_t expert = shape.experts > 0 ? chosen[static_cast<std::size_t>(p)] : p;
            addresses.push_back(
                reinterpret_cast<std::uint64_t>(pool + place * whole + expert * expert_bytes));
        }
    }
    slots = allocate<std::uint64_t>(addresses.size() + 1);
    experts = allocate<std::int32_t>(chosen.size());
    check(cudaMemcpy(slots, addresses.data(), addresses.size() * 8, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(experts, chosen.data(), chosen.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
    if (shape.experts == 0) return;
    sorted.tile_pairs = cuda::SortedPairs::good_tile(shape.pairs, shape.experts);
    sorted.most_tiles = static_cast<std::int32_t>(
        cuda::SortedPairs::most_tiles_of(shape.pairs, shape.experts, sorted.tile_pairs));
    sorted.order = allocate<std::int32_t>(static_cast<std::size_t>(shape.pairs));
    sorted.tiles = allocate<cuda::PairTile>(static_cast<std::size_t>(sorted.most_tiles));
    sorted.tile_count = allocate<std::int32_t>(1);
    cuda::sort_pairs({slots, experts, shape.pairs, shape.experts, sorted}, nullptr);
    check(cudaDeviceSynchronize(), "sort_pairs");
}

Pairs::~Pairs() {
    for (void* memory :
         std::initializer_list<void*>{slots, experts, sorted.order, sorted.tiles, sorted.tile_count})
        cudaFree(memory);
}

struct Memory {
    std::byte* pool;
    std::byte* input;
    float* out;
};

void time_shape(Timer& timer, const DataTypeTraits& type, const Shape& shape, const Memory& memory) {
    const cuda::MatmulKernels& kernels = *cuda::matmul_kernels(type.type);
    const std::int64_t bytes = *row_bytes(type.type, shape.columns);
    const std::int64_t matrix = (bytes * shape.rows + 255) / 256 * 256;
    const int experts = std::max(1, shape.experts > 0 ? shape.experts : shape.pairs);
    const std::int64_t whole = matrix * experts * shape.matrices;
    const std::int64_t places = std::max<std::int64_t>(1, static_cast<std::int64_t>(kPoolBytes) / whole);
    const bool own_rows = shape.columns < 2048;  // each pair has its own input: down
    cuda::Activations x;
    x.quantised = cuda::ActivationBuffer::in(memory.input, own_rows ? kMostPairs : kMostTokens, 128);
    x.values = reinterpret_cast<const float*>(memory.input);
    x.value_stride = 4096;
    const Pairs pairs(shape, memory.pool, places, whole, matrix * shape.matrices);
    const double us = timer.microseconds([&](int i) {
        const std::int64_t place = i % places;
        if (shape.pairs == 0) {
            cuda::MatmulArgs args;
            args.jobs[0] = {
                memory.pool + place * whole, bytes, shape.rows, 1.0f, nullptr, memory.out, shape.rows};
            args.count = 1;
            args.columns = shape.columns;
            args.tokens = shape.tokens;
            args.x = x;
            return kernels.matmul(args, timer.stream);
        }
        cuda::ExpertMatmulArgs args;
        args.slots = pairs.slots + place * shape.pairs;
        args.experts = pairs.experts;
        args.sorted = pairs.sorted;
        args.offsets[1] = static_cast<std::uint64_t>(matrix);
        args.matrices = shape.matrices;
        args.pairs = shape.pairs;
        args.pairs_per_input = own_rows && shape.experts > 0 ? 1 : kUsed;
        args.rows = shape.rows;
        args.columns = shape.columns;
        args.row_bytes = bytes;
        args.x = x;
        args.out = memory.out;
        args.out_stride = shape.rows;
        kernels.expert_matmul(args, timer.stream);
    });
    const double products = std::max(shape.tokens, shape.pairs) * static_cast<double>(shape.matrices);
    std::printf("%-8s %-22s %9.2f us %8.0f GB/s %8.2f TOP/s\n", std::string(type.name).c_str(), shape.name,
                us, static_cast<double>(bytes) * shape.rows * experts * shape.matrices / us / 1e3,
                2.0 * shape.columns * shape.rows * products / us / 1e6);
}

void run(Timer& timer, const DataTypeTraits& type, const Memory& memory) {
    const cuda::MatmulKernels& kernels = *cuda::matmul_kernels(type.type);
    if (kernels.prepare != nullptr) kernels.prepare();
    for (const Shape& shape : kShapes) {
        if (shape.columns % type.block_values == 0) time_shape(timer, type, shape, memory);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Timer timer;
    // The widest matrices and a layer's experts in binary32 are larger than the pool.
    auto* pool = allocate<std::byte>(kPoolBytes + (std::size_t{1400} << 20));
    auto* input = allocate<std::byte>(static_cast<std::size_t>(kMostPairs) * 4096 * sizeof(float));
    std::vector<std::uint64_t> noise(static_cast<std::size_t>(kMostPairs) * 4096 / 2);
    SplitMix64 noise_source(2);
    std::generate(noise.begin(), noise.end(), [&] { return noise_source.next(); });
    check(cudaMemcpy(input, noise.data(), noise.size() * sizeof noise[0], cudaMemcpyHostToDevice),
          "cudaMemcpy");
    auto* out = allocate<float>(static_cast<std::size_t>(2 * kMostPairs) * 2048);
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
        run(timer, type, {pool, input, out});
    }
    return 0;
}
