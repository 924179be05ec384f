// Speed of the CPU products, per type:
//   one token from memory   GB/s of weights, and its share of what plain reading of the same bytes gives in
//   the same run many tokens             multiply-adds per cycle of one core, weights in the cache
// Usage: matmul_bench [TYPE...]

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <immintrin.h>
#include <string_view>
#include <thread>
#include <time.h>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/split_mix.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/kernels.h"
#include "quant/random_blocks.h"

namespace coterie::cpu {
namespace {

constexpr std::int64_t kColumns = 2048;
constexpr std::int64_t kMemoryBytes = std::int64_t{192} << 20;
constexpr std::int64_t kCachedRows = 768;
constexpr int kRepetitions = 7;

/// Processor time of this thread, so that other work on the machine disturbs less.
double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
    const double start = thread_seconds();
    work();
    return thread_seconds() - start;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

/// The clock now: a chain of additions takes a cycle each.
double cycles_per_second() {
    constexpr int kRounds = 200000;
    std::uint64_t value = 1;
    const double seconds = seconds_of([&] {
        for (int i = 0; i < kRounds; ++i) {
            asm volatile(".rept 100\n add $1, %0\n .endr" : "+r"(value));
        }
    });
    return 100.0 * kRounds / seconds;
}

/// What the integer units give now: products of 32 pairs of bytes, added in 16 bits (AVX2), per second.
double peak_multiply_adds_per_second() {
    constexpr int kRounds = 50000;
    const double seconds = seconds_of([] {
        for (int i = 0; i < kRounds; ++i) {
            asm volatile(
                ".rept 16\n"
                "vpmaddubsw %%ymm0, %%ymm1, %%ymm2\n vpaddw %%ymm2, %%ymm6, %%ymm6\n"
                "vpmaddubsw %%ymm0, %%ymm1, %%ymm3\n vpaddw %%ymm3, %%ymm7, %%ymm7\n"
                "vpmaddubsw %%ymm0, %%ymm1, %%ymm4\n vpaddw %%ymm4, %%ymm8, %%ymm8\n"
                "vpmaddubsw %%ymm0, %%ymm1, %%ymm5\n vpaddw %%ymm5, %%ymm9, %%ymm9\n"
                ".endr"
                :
                :
                : "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9");
        }
    });
    return 64.0 * 32.0 * kRounds / seconds;
}

[[gnu::target("avx2")]] void read_all(const std::byte* data, std::int64_t bytes) {
    __m256i sums[4] = {};
    for (std::int64_t i = 0; i + 128 <= bytes; i += 128) {
        for (int k = 0; k < 4; ++k) {
            const auto* vector = reinterpret_cast<const __m256i*>(data + i + 32 * k);
            sums[k] = _mm256_add_epi64(sums[k], _mm256_loadu_si256(vector));
        }
    }
    const __m256i sum =
        _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    asm volatile("" : : "x"(sum));
}

/// Runs `part(first row, rows)` on each thread's share; the seconds of the slowest.
double in_parallel(int threads, std::int64_t rows,
                   const std::function<void(std::int64_t, std::int64_t)>& part) {
    const std::int64_t share = rows / threads / 16 * 16;
    std::vector<double> seconds(static_cast<std::size_t>(threads));
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < threads; ++i) {
            workers.emplace_back([&, i] {
                seconds[static_cast<std::size_t>(i)] = seconds_of([&] { part(i * share, share); });
            });
        }
    }
    return *std::max_element(seconds.begin(), seconds.end());
}

class TokenBatch {
  public:
    explicit TokenBatch(std::int64_t tokens) {
        const std::size_t groups = kColumns / kGroupValues;
        SplitMix64 random(1);
        for (std::int64_t t = 0; t < tokens; ++t) {
            Memory& m = memory_.emplace_back(
                Memory{AlignedBuffer<float>(kColumns), AlignedBuffer<std::int8_t>(kColumns),
                       AlignedBuffer<float>(groups), AlignedBuffer<float>(groups),
                       AlignedBuffer<std::int16_t>(2 * groups)});
            for (float& value : m.values.span()) value = random.next_float() - 0.5f;
            quantise_activation(m.values.data(), kColumns,
                                {m.quants.data(), m.scales.data(), m.scaled_sums.data(), m.half_sums.data()});
            rows_.push_back({kColumns, m.values.data(), m.quants.data(), m.scales.data(),
                             m.scaled_sums.data(), m.half_sums.data()});
        }
    }
    const ActivationRow* rows() const { return rows_.data(); }

  private:
    struct Memory {
        AlignedBuffer<float> values;
        AlignedBuffer<std::int8_t> quants;
        AlignedBuffer<float> scales;
        AlignedBuffer<float> scaled_sums;
        AlignedBuffer<std::int16_t> half_sums;
    };
    std::vector<Memory> memory_;
    std::vector<ActivationRow> rows_;
};

struct FromMemory {
    double gigabytes_per_second;
    double share;
};

struct Cached {
    double multiply_adds_per_cycle;
    double share;  ///< of the peak
};

class TypeBench {
  public:
    TypeBench(const DataTypeTraits& type, const KernelTable& table, std::byte* memory)
        : row_size_(*row_bytes(type.type, kColumns)),
          matmul_(table.matmul[static_cast<std::size_t>(type.type)]),
          weights_(memory),
          rows_(kMemoryBytes / row_size_ / 64 * 64) {
        const std::int64_t pattern = 64 * row_size_;
        SplitMix64 random(2);
        RandomBlocks(type.type, 0.02f).fill(random, 64 * kColumns / type.block_values, weights_);
        for (std::int64_t r = 64; r < rows_; r += 64)
            std::memcpy(weights_ + r * row_size_, weights_, pattern);
        out_.resize(static_cast<std::size_t>(std::max(rows_, 256 * kCachedRows)));
    }

    FromMemory one_token_from_memory(int threads) {
        const TokenBatch token(1);
        std::vector<double> rates;
        std::vector<double> shares;
        for (int i = 0; i < kRepetitions; ++i) {
            const double reading = in_parallel(threads, rows_, [&](std::int64_t first, std::int64_t rows) {
                read_all(weights_ + first * row_size_, rows * row_size_);
            });
            const double multiplying =
                in_parallel(threads, rows_,
                            [&](std::int64_t first, std::int64_t rows) { multiply(token, 1, first, rows); });
            rates.push_back(static_cast<double>(rows_ * row_size_) / multiplying / 1e9);
            shares.push_back(reading / multiplying);
        }
        return {median(rates), median(shares)};
    }

    Cached many_tokens(std::int64_t tokens) {
        const TokenBatch batch(tokens);
        std::vector<double> rates;
        std::vector<double> shares;
        const std::int64_t calls = 1 + 64 / tokens;
        for (int i = 0; i < kRepetitions; ++i) {
            const double clock = cycles_per_second();
            const double peak = peak_multiply_adds_per_second();
            const double seconds = seconds_of([&] {
                for (std::int64_t call = 0; call < calls; ++call) multiply(batch, tokens, 0, kCachedRows);
            });
            const double rate = static_cast<double>(calls * kCachedRows * kColumns * tokens) / seconds;
            rates.push_back(rate / clock);
            shares.push_back(rate / peak);
        }
        return {median(rates), median(shares)};
    }

  private:
    void multiply(const TokenBatch& batch, std::int64_t tokens, std::int64_t first, std::int64_t rows) {
        matmul_({weights_ + first * row_size_, row_size_, kColumns, rows, batch.rows(), tokens,
                 out_.data() + first, tokens == 1 ? rows_ : kCachedRows});
    }

    std::int64_t row_size_;
    MatmulFunction matmul_;
    std::byte* weights_;
    std::int64_t rows_;
    std::vector<float> out_;
};

void print_table(InstructionSet set, const std::vector<std::string_view>& names) {
    const KernelTable* table = kernels_for(set);
    if (table == nullptr) return;
    std::printf(
        "\n%s: one token from memory (share of reading) | from the cache: multiply-adds a cycle (share of "
        "peak)\n",
        table->name.data());
    std::printf(
        "%-8s | 1 thread, GB/s | 2 threads     | 1 token     | 2 tokens    | 4 tokens    | 64 tokens   | 256 "
        "tokens\n",
        "type");
    AlignedBuffer<std::byte> memory(kMemoryBytes);
    for (const DataTypeTraits& type : all_data_types()) {
        if (type.dot == nullptr) continue;
        if (!names.empty() && std::find(names.begin(), names.end(), type.name) == names.end()) continue;
        TypeBench bench(type, *table, memory.data());
        const FromMemory one = bench.one_token_from_memory(1);
        const FromMemory two = bench.one_token_from_memory(2);
        std::printf("%-8s | %5.1f (%3.0f%%)   | %5.1f (%3.0f%%) |", type.name.data(),
                    one.gigabytes_per_second, 100 * one.share, two.gigabytes_per_second, 100 * two.share);
        for (const std::int64_t tokens : {1, 2, 4, 64, 256}) {
            const Cached cached = bench.many_tokens(tokens);
            std::printf(" %4.1f (%3.0f%%) |", cached.multiply_adds_per_cycle, 100 * cached.share);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
}

}  // namespace
}  // namespace coterie::cpu

int main(int argc, char** argv) {
    using coterie::cpu::InstructionSet;
    const std::vector<std::string_view> names(argv + 1, argv + argc);
    for (const InstructionSet set : {InstructionSet::Avx2, InstructionSet::Avx512}) {
        coterie::cpu::print_table(set, names);
    }
}
