#pragma once

#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "engine/probe/machine_profile.h"
#include "engine/probe/probe_experts.h"

namespace coterie::engine {

/// As the system calls it.
std::string processor_name();

/// This machine as the program sees it now. `threads`: 0 means one per physical core.
MachineIdentity this_machine(const std::string& program, int threads, std::span<const DeviceInfo> gpus);

/// Measures everything, a few seconds long. `machine` is of the same GPUs; one that the program cannot use is
/// left out with a warning. Throws OutOfMemory, Internal where a GPU fails.
MachineProfile measure_machine(const MachineIdentity& machine, std::span<const DeviceInfo> gpus,
                               std::span<const ExpertShape> experts);

/// Measures experts in addition, on the threads and GPUs of the profile.
void add_experts(std::span<const ExpertShape> experts, MachineProfile& profile);

/// Those of the shapes that the profile does not have.
std::vector<ExpertShape> missing_experts(std::span<const ExpertShape> experts, const MachineProfile& profile);

}  // namespace coterie::engine
