#pragma once

#include <cstddef>

#include "base/thread_pool.h"

namespace coterie::cpu {

inline constexpr std::size_t kBandwidthBufferBytes = std::size_t{512} << 20;  ///< more than caches hold

/// The rate in bytes per second at which all threads of the pool together read memory: the limit of decoding.
/// Each thread reads its own part of a buffer, which it wrote first, with the widest loads of the instruction
/// set in use. The best of several passes, about half a second in all. Throws OutOfMemory.
double measure_read_rate(ThreadPool& threads, std::size_t buffer_bytes = kBandwidthBufferBytes);

}  // namespace coterie::cpu
