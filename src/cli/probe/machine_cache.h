#pragma once

#include <optional>
#include <span>
#include <string>

#include "devices/device.h"
#include "engine/probe/machine_profile.h"

namespace coterie::cli {

/// This machine with so many threads (0: one per physical core) and these GPUs, as this program measures it.
engine::MachineIdentity machine_of(int threads, std::span<const DeviceInfo> gpus);

/// Where its profile is kept; empty: nowhere.
std::string machine_profile_path(const engine::MachineIdentity& machine);

/// What an earlier `coterie probe` measured of this machine with all of its GPUs, so many threads, on cores
/// of its own; nothing where there is no such file, or with a warning where it cannot be used.
std::optional<engine::MachineProfile> cached_machine_profile(int threads);

/// The same of the machine given.
std::optional<engine::MachineProfile> cached_machine_profile(const engine::MachineIdentity& machine);

}  // namespace coterie::cli
