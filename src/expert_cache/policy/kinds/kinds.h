#pragma once

#include <memory>

#include "expert_cache/policy/registry.h"

/// One function per kind of policy, one file each; `registry.cpp` lists them.
namespace coterie::expert_cache {

/// Of the counts of uses that policies keep.
inline constexpr double kCountHalfLifeTokens = 128.0;

/// The default. A miss enters when its expert was used at least twice in the last 64 tokens, or while slots
/// are free; the least used by an ageing count leaves, unless it was used more than the newcomer. No margin
/// is asked on top. The comparison spares nine of ten copies and costs no hits (docs/expert_cache.md).
std::unique_ptr<Policy> make_admit(const PolicySetting& setting);

/// Adaptive replacement (Megiddo and Modha, 2003): two lists, of experts used once and of experts used again
/// since they came, and the same for those that left; a miss of an expert that left one list too early gives
/// that list more room.
std::unique_ptr<Policy> make_arc(const PolicySetting& setting);

/// Belady's rule (1966): the one that is needed last leaves, and what is needed later than all residents does
/// not enter. No policy has more hits where every admission is carried out at once.
std::unique_ptr<Policy> make_belady(const PolicySetting& setting);

/// Every miss enters; the least used by an ageing count leaves.
std::unique_ptr<Policy> make_lfu(const PolicySetting& setting);

/// Every miss enters; the least recently used leaves.
std::unique_ptr<Policy> make_lru(const PolicySetting& setting);

/// Segmented LRU: newcomers are on probation until they are used again, then protected, for which four fifths
/// of the slots are set aside; the least recently used on probation leaves.
std::unique_ptr<Policy> make_slru(const PolicySetting& setting);

/// Keeps the most used of a profile and never changes.
std::unique_ptr<Policy> make_static(const PolicySetting& setting);

}  // namespace coterie::expert_cache
