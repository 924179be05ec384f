#pragma once

#include "expert_cache/live/cache_state.h"

/// How experts come in. All under the cache's lock.
namespace coterie::expert_cache {

/// Works in what a step has logged: the policies hear of each use, and experts that were missed are admitted
/// where policy, slots and queues let them. Empties the log.
void learn(CacheState& state, StepLog& log);

/// Starts to upload an expert where a slot is free for it without another's leaving. False where none is, the
/// expert is resident or arriving, or the queue is full.
bool upload_into_room(CacheState& state, ExpertKey key);

/// The same, or in a spare slot with a victim that leaves when the expert is there.
bool upload_ahead(CacheState& state, ExpertKey key);

/// What becomes of a finished upload.
void settle_upload(CacheState& state, DeviceCache& device, const UploadResult& result);

/// Publishes fetches that have arrived, gives back the slots of those that failed.
void settle_fetches(CacheState& state, DeviceCache& device);

/// Starts a fetch into `stream` (CacheStep::fetch).
std::optional<DeviceAddress> start_fetch(CacheState& state, ExpertKey key, std::int32_t device,
                                         Stream& stream);

}  // namespace coterie::expert_cache
