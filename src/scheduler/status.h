#pragma once

#include <cstdint>
#include <string>

namespace coterie::scheduler {

enum class SlotState { Idle, WaitingForPrefix, WaitingForMemory, ReadingPrompt, Answering };

/// What one slot does now.
struct SlotStatus {
    int slot = 0;
    SlotState state = SlotState::Idle;
    std::int64_t held_tokens = 0;  ///< by its sequence, or by what its last job left
    std::int64_t prompt_tokens = 0;
    std::int64_t cached_tokens = 0;
    std::int64_t generated_tokens = 0;
    std::int64_t max_tokens = -1;
};

/// A slot's sequence in a file.
struct SavedSlot {
    std::int64_t tokens = 0;
    std::uint64_t bytes = 0;
};

}  // namespace coterie::scheduler
