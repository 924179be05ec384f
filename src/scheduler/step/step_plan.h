#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coterie::scheduler {

/// What a slot wants of the next step.
struct Work {
    int slot;
    std::int64_t tokens;        ///< it lacks until the next logits
    bool answering;             ///< it has begun to answer, so somebody is reading along
    std::int64_t position = 0;  ///< of the first of them
};

struct PlannedSlice {
    int slot;
    std::int64_t tokens;
    friend bool operator==(const PlannedSlice&, const PlannedSlice&) = default;
};

struct StepLimits {
    std::int64_t batch;         ///< tokens of a step at most
    std::int64_t prompt_chunk;  ///< of it for prompts while somebody answers
    std::int64_t grid = 1;      ///< parts of a prompt end where a multiple of this does, or the prompt
};

/// Which slots' tokens the next step computes. Every answering slot gets its token; prompts share what the
/// limits leave in equal parts, the rest of it going to those that came first; where the grid leaves no room
/// for a prompt it waits, but never for ever. `work` is ordered by arrival. Where there are more answers than
/// tokens in a step, those from `turn` on come first.
std::vector<PlannedSlice> plan_step(std::span<const Work> work, const StepLimits& limits, std::uint64_t turn);

}  // namespace coterie::scheduler
