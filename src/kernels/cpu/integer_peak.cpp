#include "kernels/cpu/integer_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/cpu/immintrin_avx512.h"
#include "kernels/cpu/kernels.h"

namespace coterie::cpu {
namespace {

constexpr int kPasses = 20;
constexpr std::int64_t kRounds = 1'000'000;

/// Independent sums: enough to hide a latency of five cycles at two instructions per cycle.
constexpr int kSums = 10;

// Each does kRounds * kSums steps of a dot product. The empty assembly makes the operand look new to the
// compiler before each step, which else would do the step once; it emits no instruction.

void run_scalar() {
    std::int32_t sums[kSums] = {};
    std::int32_t a = 3;
    std::int32_t b = 5;
    for (std::int64_t round = 0; round < kRounds; ++round) {
        for (std::int32_t& sum : sums) {
            asm volatile("" : "+r"(a));
            sum += a * b;
        }
        asm volatile("" : "+r"(b));
    }
    for (std::int32_t& sum : sums) asm volatile("" : "+r"(sum));
}

[[gnu::target("avx2")]] void run_avx2() {
    __m256i sums[kSums] = {};
    __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(-5);
    const __m256i ones = _mm256_set1_epi16(1);
    for (std::int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
        for (__m256i& sum : sums) {
            asm volatile("" : "+x"(a));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
        }
    }
    for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

[[gnu::target("avx512f,avx512vnni")]] void run_avx512() {
    __m512i sums[kSums] = {};
    __m512i a = _mm512_set1_epi8(3);
    const __m512i b = _mm512_set1_epi8(-5);
    for (std::int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
        for (__m512i& sum : sums) {
            asm volatile("" : "+v"(a));
            sum = _mm512_dpbusd_epi32(sum, a, b);
        }
    }
    for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

struct Loop {
    void (*run)();
    double operations_per_step;
};

Loop choose_loop() {
    switch (kernels().instruction_set) {
        case InstructionSet::Avx512:
            return {run_avx512, 2.0 * 64};
        case InstructionSet::Avx2:
            return {run_avx2, 2.0 * 32};
        case InstructionSet::Scalar:
            break;
    }
    return {run_scalar, 2.0};
}

}  // namespace

double measure_integer_dot_peak(ThreadPool& threads) {
    const Loop loop = choose_loop();
    const double operations =
        loop.operations_per_step * static_cast<double>(kRounds) * kSums * threads.size();
    double best = 0.0;
    for (int pass = 0; pass < kPasses; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        threads.run([&](int) { loop.run(); });
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        best = std::max(best, operations / elapsed.count());
    }
    return best;
}

}  // namespace coterie::cpu
