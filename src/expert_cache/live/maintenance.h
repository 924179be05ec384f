#pragma once

#include "expert_cache/live/cache_state.h"

/// What goes on beside the steps.
namespace coterie::expert_cache {

/// One round: settles fetches, frees slots, moves uploads on and publishes what has arrived. Takes the locks
/// itself. Whether anything is still under way.
bool maintain_once(CacheState& state);

/// Settles, frees and trims: what a step's end makes possible. Under the cache's lock.
void tidy(CacheState& state);

/// Maintains until nothing is under way; false where that takes longer than `limit`.
bool maintain_until_idle(CacheState& state, Nanoseconds limit);

/// The time that a waiting thread gives to the others: between two looks at what they have done.
void wait_a_little(CacheState& state);

/// The thread of Maintenance::Thread.
void start_thread(CacheState& state);
void stop_thread(CacheState& state);
/// There is something to do.
void wake_thread(CacheState& state);

}  // namespace coterie::expert_cache
