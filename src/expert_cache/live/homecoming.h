#pragma once

#include "expert_cache/live/cache_state.h"

/// Exclusive residency: an evicted expert's bytes go back to RAM before its slot is used again, into the
/// place that the expert which took its slot has left. What cannot go back stays in the model's file: nothing
/// is ever lost. All under the cache's lock.
namespace coterie::expert_cache {

/// Whether a retired slot, which nobody reads any more, may be freed now: its expert is back in RAM, or needs
/// not or cannot go there. Starts the copy where it is still to be made.
bool came_home(CacheState& state, DeviceCache& device, RetiredSlot& slot);

/// What becomes of copies that have ended.
void settle_returns(CacheState& state, DeviceCache& device);

/// After a device was out for a while, and nothing of it is under way any more: what it has begun is begun
/// anew.
void abandon_returns(CacheState& state, DeviceCache& device);

}  // namespace coterie::expert_cache
