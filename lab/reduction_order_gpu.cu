// Measures matrix-vector and tensor-core kernels of each candidate reduction order on this GPU; one CSV line
// per case:
//   study,kernel,type,columns,order,tokens,tile,rate,unit,share,registers,local_bytes
// Every kernel is compared bit for bit with the scalar dot product of its order (on the host) first. "share"
// is against the fastest plain read of device memory for matrix-vector kernels, against the free order for
// tiles.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "reduction_order_tile.h"
#include "reduction_order_vector.h"

namespace coterie::lab {
namespace {

constexpr int kColumns[] = {512, 768, 2048, 4096};
constexpr std::size_t kMatrixBytes = std::size_t{768} << 20;  // many times the second-level cache
constexpr int kRandomRows = 1024;                             // repeated to fill the matrix
constexpr int kTileRows = 8192;

void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}

template <class T>
T* to_device(const std::vector<T>& values) {
    T* memory = nullptr;
    check(cudaMalloc(&memory, values.size() * sizeof(T)), "allocate");
    check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
    return memory;
}

/// The median of several timed launches, in seconds.
template <class Launch>
double median_seconds(Launch launch) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<double> times;
    for (int i = 0; i < 13; ++i) {
        check(cudaEventRecord(begin), "record");
        launch();
        check(cudaEventRecord(end), "record");
        check(cudaEventSynchronize(end), "run");
        check(cudaGetLastError(), "launch");
        float milliseconds = 0.0f;
        check(cudaEventElapsedTime(&milliseconds, begin, end), "time");
        if (i >= 2) times.push_back(milliseconds * 1e-3);
    }
    check(cudaEventDestroy(begin), "event");
    check(cudaEventDestroy(end), "event");
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

__global__ void read_all(const uint4* words, std::size_t count, unsigned* out) {
    unsigned sum = 0;
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 8
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint4 word = words[i];
        sum ^= word.x ^ word.y ^ word.z ^ word.w;
    }
    if (sum == 0x12345678) *out = sum;
}

/// The rate of a plain read, and of a copy counting bytes read and written; both in bytes per second.
double measure_memory(const std::uint8_t* matrix) {
    unsigned* out = nullptr;
    std::uint8_t* target = nullptr;
    check(cudaMalloc(&out, sizeof *out), "allocate");
    check(cudaMalloc(&target, kMatrixBytes), "allocate");
    double best = 0.0;
    for (int blocks : {1056, 2112, 4224, 16896}) {
        const double seconds = median_seconds([&] {
            read_all<<<blocks, 256>>>(reinterpret_cast<const uint4*>(matrix), kMatrixBytes / 16, out);
        });
        best = std::max(best, kMatrixBytes / seconds);
    }
    const double copy = median_seconds(
        [&] { check(cudaMemcpyAsync(target, matrix, kMatrixBytes, cudaMemcpyDeviceToDevice), "copy"); });
    std::printf("gpu,read,-,0,-,1,-,%.1f,GB/s,1.000,0,0\n", best * 1e-9);
    std::printf("gpu,copy,-,0,-,1,-,%.1f,GB/s,%.3f,0,0\n", 2.0 * kMatrixBytes / copy * 1e-9,
                2.0 * kMatrixBytes / copy / best);
    check(cudaFree(out), "free");
    check(cudaFree(target), "free");
    return best;
}

struct Study {
    Type type;
    int columns;
    std::vector<std::uint8_t> rows;  ///< kRandomRows on the host
    std::uint8_t* matrix;            ///< the same rows again and again on the device
    double read_rate;
    bool agrees = true;

    std::size_t stride() const {
        return static_cast<std::size_t>(columns / kBlockValues) * block_bytes(type);
    }

    void expect(const char* kernel, Order order, int row, const Activation& x, float value) {
        const float law = scalar_dot(type, order, rows.data() + row * stride(), x);
        const bool equal = order == Order::Free ? std::fabs(value - law) <= 1e-3f * (1.0f + std::fabs(law))
                                                : std::memcmp(&law, &value, sizeof law) == 0;
        if (equal || !agrees) return;
        agrees = false;
        std::fprintf(stderr, "%s %s %s columns %d row %d: %a instead of %a\n", kernel, name_of(type),
                     name_of(order), columns, row, value, law);
    }
};

template <class Kernel>
std::string resources(Kernel kernel) {
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, kernel), "attributes");
    return std::to_string(attributes.numRegs) + "," + std::to_string(attributes.localSizeBytes);
}

using VectorFunction = void (*)(const std::uint8_t*, DeviceActivation, float*);

void measure_vector(Study& study, const char* name, Order order, VectorFunction kernel, int shared_bytes,
                    const DeviceActivation& device_x, const Activation& x, float* out) {
    const int rows = static_cast<int>(kMatrixBytes / study.stride() / kRandomRows * kRandomRows);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "shared memory");
    check(cudaMemset(out, 0xff, rows * sizeof(float)), "poison");
    const double seconds = median_seconds(
        [&] { kernel<<<rows / kRowsPerBlock, kVectorThreads, shared_bytes>>>(study.matrix, device_x, out); });
    std::vector<float> values(rows);
    check(cudaMemcpy(values.data(), out, rows * sizeof(float), cudaMemcpyDeviceToHost), "download");
    for (int r = 0; r < kRandomRows; ++r) study.expect(name, order, r, x, values[r]);
    for (int r = kRandomRows; r < rows; ++r)
        if (std::memcmp(&values[r], &values[r % kRandomRows], sizeof(float)) != 0) study.agrees = false;
    const double rate = rows * study.stride() / seconds;
    std::printf("gpu,%s,%s,%d,%s,1,-,%.1f,GB/s,%.3f,%s\n", name, name_of(study.type), study.columns,
                name_of(order), rate * 1e-9, rate / study.read_rate, resources(kernel).c_str());
}

template <Type type>
void measure_vectors(Study& study, const Activation& x) {
    const DeviceActivation device_x{to_device(x.quants), to_device(x.scales), to_device(x.scaled_sums),
                                    to_device(x.half_sums), x.columns / kBlockValues};
    float* out = nullptr;
    check(cudaMalloc(&out, kMatrixBytes / study.stride() * sizeof(float)), "allocate");
    const int staged = kVectorThreads / 8 * kRowsPerOctet * staged_parts(type) * (x.groups() + 1) *
                       static_cast<int>(sizeof(float));
    measure_vector(study, "vector_alone", Order::Segments, segments_alone<type>, 0, device_x, x, out);
    measure_vector(study, "vector_staged", Order::Segments, segments_staged<type>, staged, device_x, x, out);
    measure_vector(study, "vector", Order::Lanes4, four_lanes<type>, 0, device_x, x, out);
    measure_vector(study, "vector", Order::Lanes8, interleaved_vector<type, LanesOf::Eight>, 0, device_x, x,
                   out);
    measure_vector(study, "vector", Order::Lanes32, interleaved_vector<type, LanesOf::ThirtyTwo>, 0, device_x,
                   x, out);
    check(cudaFree(out), "free");
}

struct Tokens {
    std::vector<Activation> rows;
    TileActivation device;
};

Tokens make_tokens(int tokens, int columns, std::mt19937& random) {
    Tokens result;
    for (int t = 0; t < tokens; ++t) result.rows.push_back(random_activation(columns, random));
    std::vector<uint2> fragments;
    std::vector<float4> scales;
    for (int g = 0; g < columns / 32; ++g)
        for (int tile = 0; tile < tokens / 8; ++tile) {
            for (int lane = 0; lane < 32; ++lane) {
                const std::int8_t* q =
                    result.rows[8 * tile + lane / 4].quants.data() + 32 * g + 4 * (lane % 4);
                uint2 fragment;
                std::memcpy(&fragment.x, q, 4);
                std::memcpy(&fragment.y, q + 16, 4);
                fragments.push_back(fragment);
            }
            for (int pair = 0; pair < 4; ++pair) {
                const Activation& a = result.rows[8 * tile + 2 * pair];
                const Activation& b = result.rows[8 * tile + 2 * pair + 1];
                scales.push_back(make_float4(a.scales[g], b.scales[g], a.scaled_sums[g], b.scaled_sums[g]));
            }
        }
    result.device = {to_device(fragments), to_device(scales), columns / kBlockValues, tokens};
    return result;
}

template <Type type, TileKernel kind, int kTokenTiles>
double measure_tile(Study& study, const char* name, Order order, const Tokens& x, float* out,
                    double free_rate) {
    const auto kernel = tile<type, kind, kTokenTiles>;
    const int tokens = x.device.tokens;
    check(cudaMemset(out, 0xff, std::size_t{kTileRows} * tokens * sizeof(float)), "poison");
    const dim3 grid(tokens / (8 * kTokenTiles), kTileRows / 64);
    const double seconds = median_seconds([&] { kernel<<<grid, 128>>>(study.matrix, x.device, out); });
    std::vector<float> values(std::size_t{kTileRows} * tokens);
    check(cudaMemcpy(values.data(), out, values.size() * sizeof(float), cudaMemcpyDeviceToHost), "download");
    for (int t = 0; t < tokens; t += 13)
        for (int r = t % 7; r < kRandomRows; r += 31)
            study.expect(name, order, r, x.rows[t], values[std::size_t{kTileRows} * t + r]);
    const double rate = 2.0 * kTileRows * study.columns * tokens / seconds;
    std::printf("gpu,%s,%s,%d,%s,%d,16x%d,%.1f,TOP/s,%.3f,%s\n", name, name_of(type), study.columns,
                name_of(order), tokens, 8 * kTokenTiles, rate * 1e-12,
                free_rate > 0.0 ? rate / free_rate : 1.0, resources(kernel).c_str());
    return rate;
}

template <Type type>
void measure_tiles(Study& study, int tokens, std::mt19937& random) {
    const Tokens x = make_tokens(tokens, study.columns, random);
    float* out = nullptr;
    check(cudaMalloc(&out, std::size_t{kTileRows} * tokens * sizeof(float)), "allocate");
    double best = measure_tile<type, TileKernel::Free, 4>(study, "tile", Order::Free, x, out, 0.0);
    best = std::max(best, measure_tile<type, TileKernel::Free, 8>(study, "tile", Order::Free, x, out, best));
    measure_tile<type, TileKernel::Segments, 4>(study, "tile", Order::Segments, x, out, best);
    measure_tile<type, TileKernel::Segments, 8>(study, "tile", Order::Segments, x, out, best);
    if (study.columns % 2048 == 0) {
        measure_tile<type, TileKernel::SegmentsOfBlocks, 4>(study, "tile_of_blocks", Order::Segments, x, out,
                                                            best);
        measure_tile<type, TileKernel::SegmentsOfBlocks, 8>(study, "tile_of_blocks", Order::Segments, x, out,
                                                            best);
    }
    measure_tile<type, TileKernel::Lanes4, 4>(study, "tile", Order::Lanes4, x, out, best);
    measure_tile<type, TileKernel::Lanes4, 8>(study, "tile", Order::Lanes4, x, out, best);
    measure_tile<type, TileKernel::Lanes8, 2>(study, "tile", Order::Lanes8, x, out, best);
    measure_tile<type, TileKernel::Lanes8, 4>(study, "tile", Order::Lanes8, x, out, best);
    measure_tile<type, TileKernel::Lanes8Strided, 8>(study, "tile_strided", Order::Lanes8, x, out, best);
    measure_tile<type, TileKernel::Lanes32, 1>(study, "tile", Order::Lanes32, x, out, best);
    check(cudaFree(out), "free");
}

/// Uploads random rows and repeats them until the matrix is full.
void fill(Study& study, std::mt19937& random) {
    study.rows.resize(kRandomRows * study.stride());
    fill_random_blocks(study.type, study.rows.data(), study.rows.size() / block_bytes(study.type), random);
    std::size_t filled = study.rows.size();
    check(cudaMemcpy(study.matrix, study.rows.data(), filled, cudaMemcpyHostToDevice), "upload");
    while (filled < kMatrixBytes) {
        const std::size_t count = std::min(filled, kMatrixBytes - filled);
        check(cudaMemcpy(study.matrix + filled, study.matrix, count, cudaMemcpyDeviceToDevice), "repeat");
        filled += count;
    }
}

template <Type type>
bool measure_type(std::uint8_t* matrix, double read_rate, std::mt19937& random) {
    bool agrees = true;
    for (int columns : kColumns) {
        Study study{type, columns, {}, matrix, read_rate};
        fill(study, random);
        measure_vectors<type>(study, random_activation(columns, random));
        for (int tokens : {128, 512}) measure_tiles<type>(study, tokens, random);
        agrees = agrees && study.agrees;
        std::fflush(stdout);
    }
    return agrees;
}

}  // namespace
}  // namespace coterie::lab

int main() {
    using namespace coterie::lab;
    std::mt19937 random(20240601);
    std::uint8_t* matrix = nullptr;
    check(cudaMalloc(&matrix, kMatrixBytes + 16), "allocate");
    check(cudaMemset(matrix, 0, kMatrixBytes), "clear");
    std::puts("study,kernel,type,columns,order,tokens,tile,rate,unit,share,registers,local_bytes");
    const double read_rate = measure_memory(matrix);
    const bool agrees[] = {measure_type<Type::Q4_K>(matrix, read_rate, random),
                           measure_type<Type::Q6_K>(matrix, read_rate, random),
                           measure_type<Type::IQ4_XS>(matrix, read_rate, random)};
    return agrees[0] && agrees[1] && agrees[2] ? 0 : 1;
}
