#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "expert_cache/live/cache_state.h"

/// Changes of size while serving. All take the cache's locks and wait for steps, leases and copies to let go
/// of what is to leave, at most for `CacheOptions::patience`.
namespace coterie::expert_cache {

/// Frees slots until each layer has at most `targets` of them: the coldest experts leave, hot ones move
/// forward on the device. False where that did not work everywhere; each layer is then as small as it got.
bool shrink_to(CacheState& state, DeviceCache& device, std::span<const std::int32_t> targets);

/// Maps slots until each layer has what it is to have; fewer where the device refuses.
void grow_to_wanted(CacheState& state, DeviceCache& device);

/// Targets that give back at least `bytes` of mapped memory, the same part of every layer; nothing where
/// there is not that much.
std::optional<std::vector<std::int32_t>> targets_without(const DeviceCache& device, std::uint64_t bytes);

}  // namespace coterie::expert_cache
