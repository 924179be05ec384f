#pragma once

#include <chrono>
#include <cstdint>

namespace coterie::scheduler {

/// How many tokens of a prompt may join a step that others' answers wait for, so that it takes no longer than
/// a given time. Learns from the steps before: more than twice the last chunk is never tried at once.
class ChunkSize {
  public:
    ChunkSize(std::chrono::milliseconds longest_step, std::int64_t batch);

    std::int64_t tokens() const { return tokens_; }
    /// A step with `prompt_tokens` tokens of prompts took this long.
    void observe(std::int64_t prompt_tokens, double seconds);

  private:
    static constexpr std::int64_t kSmallest = 16;

    double longest_seconds_;
    std::int64_t batch_;
    std::int64_t tokens_;
};

}  // namespace coterie::scheduler
