#pragma once

#include <cstdint>
#include <span>

#include "expert_cache/planner/step_state.h"

namespace coterie::expert_cache {

/// Up to so many experts with equal tokens, `search_counts` ends soon.
inline constexpr std::size_t kCountsLimit = 16;

/// For experts with equal tokens, as in decode of one token: finds the best plan by numbers alone. `order`:
/// room for all used experts.
void search_counts(StepState& state, std::span<std::int32_t> order);

/// Up to here it pays to look at all plans: about 10 us.
inline constexpr std::int64_t kAllPlansLimit = 512;

/// How many plans there are, at most kAllPlansLimit + 1.
std::int64_t count_plans(const StepState& state);

/// Tries every plan and leaves the best.
void search_all(StepState& state);

/// Fetches a miss that is on the CPU to the device where that is best; false where none has a spare slot.
bool fetch_to_best_device(StepState& state, std::size_t i);

/// Fetches the misses one by one and leaves the best plan on the way. The first fetch can be a loss that the
/// second turns into a gain, so the way is walked to its end. `misses`: room for all used experts.
void fetch_while_it_helps(StepState& state, std::span<std::int32_t> misses);

/// Moves single experts and exchanges pairs as long as that helps. A hand-off or a link's contended rate goes
/// only with the last expert of a side, so sides are also tried empty: the one that ends last, and all
/// devices.
void improve(StepState& state);

}  // namespace coterie::expert_cache
