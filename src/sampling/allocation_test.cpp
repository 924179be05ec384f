// Counts what the program takes from the heap, to show that a token takes nothing.

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

#include "sampling/sampler_chain.h"

namespace {

std::atomic<std::int64_t> allocations{0};

void* count_and_allocate(std::size_t bytes) {
    ++allocations;
    return std::malloc(bytes ? bytes : 1);
}

void* allocate(std::size_t bytes) {
    if (void* memory = count_and_allocate(bytes)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return count_and_allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return count_and_allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace coterie {
namespace {

/// Allocations of 100 tokens after the first 10.
std::int64_t allocations_per_100(const SamplingOptions& options) {
    std::vector<float> logits(5000);
    for (std::size_t i = 0; i < logits.size(); ++i)
        logits[i] = static_cast<float>((i * 7919) % 5000) * 0.002f;
    SamplerChain chain(options, 5000);
    std::int64_t before = 0;
    for (int i = 0; i < 110; ++i) {
        if (i == 10) before = allocations;
        chain.accept(chain.sample(logits));
    }
    return allocations - before;
}

TEST(Allocation, ATokenTakesNothingFromTheHeap) {
    EXPECT_EQ(allocations_per_100({}), 0);
    EXPECT_EQ(allocations_per_100({.temperature = 0, .repeat_last_n = 8, .repeat_penalty = 1.1f}), 0);
    EXPECT_EQ(allocations_per_100({.dynatemp_range = 0.2f,
                                   .top_k = 0,
                                   .typical_p = 0.9f,
                                   .top_n_sigma = 3,
                                   .xtc_probability = 0.5f,
                                   .repeat_last_n = -1,
                                   .frequency_penalty = 0.1f}),
              0);
    EXPECT_EQ(allocations_per_100({.mirostat = 1}), 0);
    EXPECT_EQ(allocations_per_100({.mirostat = 2}), 0);
}

TEST(Allocation, HistoriesGrowByDoubling) { EXPECT_LT(allocations_per_100({.dry_multiplier = 1}), 20); }

}  // namespace
}  // namespace coterie
