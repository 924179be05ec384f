#include "kernels/cpu/memory_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fmt/core.h>
#include <sys/mman.h>

#include "base/error.h"
#include "kernels/cpu/immintrin_avx512.h"
#include "kernels/cpu/kernels.h"

namespace coterie::cpu {
namespace {

constexpr int kPasses = 16;
constexpr std::size_t kBlockBytes = 1024;  ///< parts are whole blocks

/// Pages that nobody has touched yet, so that each thread gets its part near itself.
std::byte* untouched_pages(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        fail(ErrorCode::OutOfMemory, "no memory for the {} MB that the read rate is measured with",
             bytes >> 20);
    }
    madvise(data, bytes, MADV_HUGEPAGE);
    return static_cast<std::byte*>(data);
}

std::size_t part_bytes(std::size_t buffer_bytes, int workers) {
    const std::size_t blocks = buffer_bytes / static_cast<std::size_t>(workers) / kBlockBytes;
    return std::max(blocks, std::size_t{1}) * kBlockBytes;
}

// Each folds `bytes` bytes, a multiple of kBlockBytes, into one word so that no load can be left out. Four
// streams side by side keep more lines in flight than one.

std::uint64_t fold_scalar(const std::byte* data, std::size_t bytes) {
    std::uint64_t fold[4] = {};
    for (std::size_t i = 0; i < bytes; i += sizeof fold) {
        std::uint64_t words[4];
        std::memcpy(words, data + i, sizeof words);
        for (int k = 0; k < 4; ++k) fold[k] ^= words[k];
    }
    return fold[0] ^ fold[1] ^ fold[2] ^ fold[3];
}

[[gnu::target("avx2")]] std::uint64_t fold_avx2(const std::byte* data, std::size_t bytes) {
    const std::size_t stream = bytes / 4;
    __m256i fold[8] = {};
    for (std::size_t i = 0; i < stream; i += 64) {
        for (int k = 0; k < 8; ++k) {
            const std::byte* from = data + static_cast<std::size_t>(k / 2) * stream + i + 32 * (k % 2);
            fold[k] = _mm256_xor_si256(fold[k], _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
        }
    }
    for (int k = 1; k < 8; ++k) fold[0] = _mm256_xor_si256(fold[0], fold[k]);
    std::uint64_t words[4];
    std::memcpy(words, fold, sizeof words);
    return words[0] ^ words[1] ^ words[2] ^ words[3];
}

[[gnu::target("avx512f")]] std::uint64_t fold_avx512(const std::byte* data, std::size_t bytes) {
    const std::size_t stream = bytes / 4;
    __m512i fold[4] = {};
    for (std::size_t i = 0; i < stream; i += 64) {
        for (int k = 0; k < 4; ++k) {
            const std::byte* from = data + static_cast<std::size_t>(k) * stream + i;
            fold[k] = _mm512_xor_si512(fold[k], _mm512_load_si512(from));
        }
    }
    for (int k = 1; k < 4; ++k) fold[0] = _mm512_xor_si512(fold[0], fold[k]);
    std::uint64_t words[8];
    std::memcpy(words, fold, sizeof words);
    std::uint64_t result = 0;
    for (const std::uint64_t word : words) result ^= word;
    return result;
}

auto fold_function() {
    switch (kernels().instruction_set) {
        case InstructionSet::Avx512:
            return fold_avx512;
        case InstructionSet::Avx2:
            return fold_avx2;
        case InstructionSet::Scalar:
            break;
    }
    return fold_scalar;
}

}  // namespace

MemoryReader::MemoryReader(ThreadPool& threads, std::size_t buffer_bytes)
    : threads_(threads),
      part_(part_bytes(buffer_bytes, threads.size())),
      data_(untouched_pages(part_ * static_cast<std::size_t>(threads.size()))),
      folds_(static_cast<std::size_t>(threads.size())) {
    threads_.run([&](int worker) { std::memset(part_of(worker), worker + 1, part_); });
}

MemoryReader::~MemoryReader() { munmap(data_, part_ * folds_.size()); }

double MemoryReader::pass() {
    const auto fold = fold_function();
    const auto start = std::chrono::steady_clock::now();
    threads_.run(
        [&](int worker) { folds_[static_cast<std::size_t>(worker)] = fold(part_of(worker), part_); });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    // Equal bytes cancel out in pairs of words.
    COTERIE_CHECK(std::all_of(folds_.begin(), folds_.end(), [](std::uint64_t word) { return word == 0; }));
    return static_cast<double>(part_ * folds_.size()) / elapsed.count();
}

double measure_read_rate(ThreadPool& threads, std::size_t buffer_bytes) {
    MemoryReader reader(threads, buffer_bytes);
    double best = 0.0;
    for (int pass = 0; pass < kPasses; ++pass) best = std::max(best, reader.pass());
    return best;
}

}  // namespace coterie::cpu
