#pragma once

#include <optional>
#include <span>
#include <string>

#include "devices/device.h"
#include "engine/probe/machine_profile.h"
#include "engine/probe/probe_experts.h"

namespace coterie::cli {

/// This machine with so many threads (0: one per physical core) and these GPUs, as this program measures it.
engine::MachineIdentity machine_of(int threads, std::span<const DeviceInfo> gpus);

/// Where its profile is kept; empty: nowhere.
std::string machine_profile_path(const engine::MachineIdentity& machine);

/// What an earlier `coterie probe` measured of this machine with all of its GPUs, so many threads, on cores
/// of its own; nothing where there is no such file, or with a warning where it cannot be used.
std::optional<engine::MachineProfile> cached_machine_profile(int threads);

enum class Measure {
    IfNew,  ///< what is kept counts; experts that it lacks are measured in addition
    Again,
};
/// What is kept of this machine with these GPUs, or else measured now (a few seconds) and kept.
engine::MachineProfile measured_machine_profile(int threads, std::span<const DeviceInfo> gpus,
                                                std::span<const engine::ExpertShape> experts,
                                                Measure measure);

/// What an earlier run measured of the machine given, crowded or not.
std::optional<engine::MachineProfile> cached_machine_profile(const engine::MachineIdentity& machine);

}  // namespace coterie::cli
