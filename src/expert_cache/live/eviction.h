#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "expert_cache/live/cache_state.h"

/// How slots become free. All under the cache's lock.
namespace coterie::expert_cache {

/// Whether nothing speaks against an expert's leaving now: no lease, no running step that uses it, no other
/// expert that is to replace it already.
bool may_leave(CacheState& state, const DeviceCache& device, ExpertKey key, std::int32_t slot);

/// Takes a resident out of the table. Its slot is freed when nobody reads it any more.
void evict(CacheState& state, DeviceCache& device, std::int32_t layer, std::int32_t slot);

/// Whom `incoming` is to replace, on any device that could take it. Nothing where the policy keeps them all.
struct Victim {
    std::int32_t device;
    std::int32_t slot;
};
std::optional<Victim> choose_victim(CacheState& state, ExpertKey incoming);

/// The resident of a layer worth least, other than `keep`; -1 where none may leave.
std::int32_t coldest_slot(CacheState& state, const DeviceCache& device, std::int32_t layer,
                          std::int32_t keep);

/// Evicts until the layer has its spare slots again, or none may leave.
void trim(CacheState& state, DeviceCache& device, std::int32_t layer, std::int32_t keep);

/// The same for all layers, where one may need it.
void trim_all(CacheState& state, DeviceCache& device);

/// Frees retired slots that nobody can read any more.
void reclaim(CacheState& state, DeviceCache& device);

/// Makes a device's own stream usable again after it failed, if it did.
void revive(CacheState& state, DeviceCache& device);

/// A call or copy failed.
void count_failure(CacheState& state, DeviceCache& device);
/// After a call or copy failed: leaves the device out if it is lost, or fails too often.
void check_lost(CacheState& state, DeviceCache& device);

enum class Absence {
    ForGood,  ///< lost, or copies under way that may write for ever
    ForNow,   ///< it refused something; it is tried again later and later
};
/// Takes a device out of the cache, with one line in the log.
void drop(CacheState& state, DeviceCache& device, const char* reason, Absence absence);
/// Takes a device back that is out for now, when its time has come and nothing writes its slots any more.
void take_back(CacheState& state, DeviceCache& device);

}  // namespace coterie::expert_cache
