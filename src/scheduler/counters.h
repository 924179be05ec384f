#pragma once

#include <atomic>
#include <cstdint>

namespace coterie::scheduler {

/// What a scheduler did since its start. Any thread may read and add.
struct Counters {
    using Count = std::atomic<std::uint64_t>;

    Count prompt_tokens{0};  ///< computed
    Count cached_tokens{0};  ///< of prompts, taken from the prefix cache
    Count generated_tokens{0};
    Count drafted_tokens{0};   ///< computed on the chance that they come true
    Count accepted_tokens{0};  ///< of them, those that did
    Count steps{0};
    Count prompt_step_us{0};  ///< time of steps with tokens of prompts
    Count answer_step_us{0};  ///< time of steps without
    Count draw_us{0};         ///< of it: drawing tokens and telling readers
    Count finished{0};
    Count cancelled{0};
    Count failed{0};
    Count timed_out{0};
    Count refused{0};            ///< the queue was full
    Count suspended{0};          ///< answers that gave their pages to older ones for a while
    Count evicted_sequences{0};  ///< of the prefix cache

    std::atomic<std::int64_t> waiting{0};         ///< in the queue now
    std::atomic<std::int64_t> running{0};         ///< in slots now
    std::atomic<std::int64_t> pages_used{0};      ///< of the KV cache now
    std::atomic<std::int64_t> kept_sequences{0};  ///< by the prefix cache now

    static void add(Count& count, std::uint64_t amount) {
        count.fetch_add(amount, std::memory_order_relaxed);
    }
};

}  // namespace coterie::scheduler
