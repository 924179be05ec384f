#pragma once

#include <chrono>
#include <cstddef>

#include "speculative/options.h"

namespace coterie::scheduler {

struct SchedulerOptions {
    int slots = 4;                    ///< answers written at the same time
    std::size_t queue_limit = 64;     ///< requests that wait for a slot
    std::size_t kept_sequences = 32;  ///< in the prefix cache; 0: none
    /// What answers may wait for a part of another's prompt.
    std::chrono::milliseconds longest_step{200};
    std::chrono::milliseconds request_limit{0};  ///< from submission to the end; 0: none
    speculative::SpeculativeOptions drafts = {};
};

}  // namespace coterie::scheduler
