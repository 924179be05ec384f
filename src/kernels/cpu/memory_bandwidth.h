#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace coterie::cpu {

inline constexpr std::size_t kBandwidthBufferBytes = std::size_t{512} << 20;  ///< more than caches hold

/// Memory that all threads of a pool read together: each its own part, which it wrote first, with the widest
/// loads of the instruction set in use.
class MemoryReader {
  public:
    /// Throws OutOfMemory. `threads` outlives it.
    explicit MemoryReader(ThreadPool& threads, std::size_t buffer_bytes = kBandwidthBufferBytes);
    ~MemoryReader();
    MemoryReader(const MemoryReader&) = delete;
    MemoryReader& operator=(const MemoryReader&) = delete;

    /// Reads everything once; bytes per second.
    double pass();

  private:
    std::byte* part_of(int worker) const { return data_ + static_cast<std::size_t>(worker) * part_; }

    ThreadPool& threads_;
    const std::size_t part_;  ///< bytes of each thread
    std::byte* data_;
    std::vector<std::uint64_t> folds_;  ///< [threads]
};

/// The rate in bytes per second at which all threads of the pool together read memory: the limit of decoding.
/// The best of several passes of a MemoryReader, about half a second in all. Throws OutOfMemory.
double measure_read_rate(ThreadPool& threads, std::size_t buffer_bytes = kBandwidthBufferBytes);

}  // namespace coterie::cpu
