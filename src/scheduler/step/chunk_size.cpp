#include "scheduler/step/chunk_size.h"

#include <algorithm>

namespace coterie::scheduler {

ChunkSize::ChunkSize(std::chrono::milliseconds longest_step, std::int64_t batch)
    : longest_seconds_(std::chrono::duration<double>(longest_step).count()),
      batch_(batch),
      tokens_(std::min(2 * kSmallest, batch)) {}

void ChunkSize::observe(std::int64_t prompt_tokens, double seconds) {
    if (prompt_tokens < std::min(kSmallest, batch_)) return;  // mostly the answers' own time
    const double fitting = static_cast<double>(prompt_tokens) * longest_seconds_ / std::max(seconds, 1e-6);
    const double most = 2.0 * static_cast<double>(std::max(tokens_, prompt_tokens));
    const auto next = static_cast<std::int64_t>(std::min({fitting, most, static_cast<double>(batch_)}));
    tokens_ = std::max(next, std::min(kSmallest, batch_));
}

}  // namespace coterie::scheduler
