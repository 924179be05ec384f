// Measures matrix-vector kernels of each candidate reduction order on this CPU and prints one CSV line per
// case:
//   study,isa,type,columns,order,layout,memory,threads,gb_per_s,share_of_read
// Every kernel is first compared bit for bit with the scalar dot product of its order. "share_of_read" is
// against a plain AVX2 read of the same bytes by the same threads. Usage: reduction_order_cpu [threads for
// the RAM runs, default 1 and all]

#include "reduction_order_cpu.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <immintrin.h>
#include <sys/mman.h>
#include <thread>

namespace coterie::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kColumns[] = {512, 768, 2048, 4096};
constexpr std::size_t kCacheBytes = 288 << 10;  // fits the second-level cache of every machine measured
constexpr std::size_t kRamBytes = 1 << 30;      // several times the last-level cache

const char* name_of(Layout layout) { return layout == Layout::LanePerRow ? "lane_per_row" : "row_at_a_time"; }

std::size_t row_bytes(Type type, int columns) {
    return static_cast<std::size_t>(columns / kBlockValues) * block_bytes(type);
}

/// Memory in huge pages where the system has them, so that page walks do not blur the figures.
std::uint8_t* allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 2 << 20, bytes) != 0) std::abort();
    madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<std::uint8_t*>(memory);
}

__attribute__((target("avx2"))) void read_all(const std::uint8_t* bytes, std::size_t count, float* out) {
    __m256i sums[4] = {};
    for (std::size_t i = 0; i + 128 <= count; i += 128)
        for (std::size_t j = 0; j < 4; ++j)
            sums[j] = _mm256_xor_si256(
                sums[j], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i + 32 * j)));
    const __m256i all =
        _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
    _mm_store_ss(out, _mm_castsi128_ps(_mm256_castsi256_si128(all)));
}

/// Calls work(first_row, rows) on `threads` shares of the rows; shares are multiples of 16 rows.
template <class Work>
void share_rows(int threads, int rows, Work work) {
    if (threads == 1) return work(0, rows);
    std::vector<std::thread> workers;
    const int units = rows / 16;
    for (int t = 0; t < threads; ++t) {
        const int begin = static_cast<int>(std::int64_t{units} * t / threads) * 16;
        const int end = static_cast<int>(std::int64_t{units} * (t + 1) / threads) * 16;
        workers.emplace_back(work, begin, end - begin);
    }
    for (std::thread& worker : workers) worker.join();
}

/// The best rate of several passes; on a shared machine the best is the least disturbed.
template <class Pass>
double best_rate(std::size_t bytes, double seconds, Pass pass) {
    double best = 0.0;
    pass();
    const auto begin = Clock::now();
    do {
        const auto start = Clock::now();
        const int repeats = static_cast<int>(std::max<std::size_t>(1, (4 << 20) / bytes));
        for (int i = 0; i < repeats; ++i) pass();
        const std::chrono::duration<double> took = Clock::now() - start;
        best = std::max(best, static_cast<double>(bytes) * repeats / took.count() * 1e-9);
    } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
    return best;
}

struct Case {
    const char* isa;
    const Kernel* kernel;
    const char* memory;
    int threads;
    std::size_t bytes;
};

void measure(const Case& c, const std::uint8_t* matrix, const Activation& x, std::vector<float>& out) {
    const std::size_t stride = row_bytes(c.kernel->type, x.columns);
    const int rows = static_cast<int>(c.bytes / stride / 16 * 16);
    const std::size_t used = static_cast<std::size_t>(rows) * stride;
    const double seconds = c.bytes == kCacheBytes ? 0.012 : 0.1;
    const double rate = best_rate(used, seconds, [&] {
        share_rows(c.threads, rows, [&](int first, int count) {
            c.kernel->run(matrix + first * stride, count, x, out.data() + first);
        });
    });
    const double read = best_rate(used, seconds, [&] {
        share_rows(c.threads, rows, [&](int first, int count) {
            read_all(matrix + first * stride, count * stride, out.data() + first);
        });
    });
    std::printf("cpu,%s,%s,%d,%s,%s,%s,%d,%.2f,%.3f\n", c.isa, name_of(c.kernel->type), x.columns,
                name_of(c.kernel->order), name_of(c.kernel->layout), c.memory, c.threads, rate, rate / read);
    std::fflush(stdout);
}

/// False, with a line on standard error, where a kernel leaves its order's scalar law.
bool agrees_with_law(const char* isa, const Kernel& kernel, const std::uint8_t* matrix, const Activation& x) {
    constexpr int kRows = 64;
    std::vector<float> out(kRows);
    kernel.run(matrix, kRows, x, out.data());
    for (int r = 0; r < kRows; ++r) {
        const float law =
            scalar_dot(kernel.type, kernel.order, matrix + r * row_bytes(kernel.type, x.columns), x);
        const bool equal = kernel.order == Order::Free
                               ? std::fabs(out[r] - law) <= 1e-3f * (1.0f + std::fabs(law))
                               : std::memcmp(&out[r], &law, sizeof law) == 0;
        if (equal) continue;
        std::fprintf(stderr, "%s %s %s %s columns %d row %d: %a instead of %a\n", isa, name_of(kernel.type),
                     name_of(kernel.order), name_of(kernel.layout), x.columns, r, static_cast<double>(out[r]),
                     static_cast<double>(law));
        return false;
    }
    return true;
}

/// Random blocks at the start, repeated up to the end: random numbers for all of it would take longer than
/// the study.
void fill(Type type, std::uint8_t* matrix, std::size_t bytes, std::mt19937& random) {
    const std::size_t blocks = (1 << 20) / block_bytes(type);
    const std::size_t period = blocks * block_bytes(type);
    fill_random_blocks(type, matrix, blocks, random);
    for (std::size_t i = period; i < bytes; i += period)
        std::memcpy(matrix + i, matrix, std::min(period, bytes - i));
}

int study(int all_threads, int only_columns) {
    struct Set {
        const char* isa;
        std::span<const Kernel> kernels;
    };
    std::vector<Set> sets{{"avx2", avx2_kernels()}};
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl"))
        sets.push_back({"avx512", avx512_kernels()});
    std::mt19937 random(20240601);
    std::uint8_t* matrix = allocate(kRamBytes);
    std::vector<float> out(kRamBytes / block_bytes(Type::IQ4_XS));
    bool all_agree = true;
    std::puts("study,isa,type,columns,order,layout,memory,threads,gb_per_s,share_of_read");
    for (Type type : {Type::Q4_K, Type::Q6_K, Type::IQ4_XS}) {
        fill(type, matrix, kRamBytes, random);
        for (int columns : kColumns) {
            if (only_columns != 0 && columns != only_columns) continue;
            const Activation x = random_activation(columns, random);
            for (const Set& set : sets)
                for (const Kernel& kernel : set.kernels) {
                    if (kernel.type != type) continue;
                    all_agree = agrees_with_law(set.isa, kernel, matrix, x) && all_agree;
                    measure({set.isa, &kernel, "cache", 1, kCacheBytes}, matrix, x, out);
                    measure({set.isa, &kernel, "ram", 1, kRamBytes}, matrix, x, out);
                    if (all_threads > 1)
                        measure({set.isa, &kernel, "ram", all_threads, kRamBytes}, matrix, x, out);
                }
        }
    }
    std::free(matrix);
    return all_agree ? 0 : 1;
}

}  // namespace
}  // namespace coterie::lab

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
    return coterie::lab::study(threads, argc > 2 ? std::atoi(argv[2]) : 0);
}
