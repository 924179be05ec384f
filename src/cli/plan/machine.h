#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/placement_facts.h"
#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/facts.h"

namespace coterie::cli::plan {

/// Devices as a plan sees them.
struct PlannedDevice {
    expert_cache::DeviceFacts facts;
    double link_bytes_per_second = 0;
    double copy_seconds = 0;
    double memory_bytes_per_second = 0;  ///< 0: not known
    int gpu = -1;                        ///< its number; -1: simulated
};

/// The devices of `--fake-gpu`; without it, those of this machine. Opens none.
std::vector<PlannedDevice> planned_devices(const std::string& fake_gpu);

struct CostSetting {
    std::string file;                  ///< JSON; empty: from the rest
    double ram_bytes_per_second = 0;   ///< 0: measured here
    double vram_bytes_per_second = 0;  ///< of devices whose rate is not known
    double handoff_seconds = 0;
    int threads = 0;
};

/// Costs for the model's kinds of experts on these devices: what `setting` gives, else what `coterie probe`
/// once measured, else RAM's rate and the arithmetic of the CPU measured in about a second, and assumptions.
/// Throws InvalidArgument where the file's kinds or devices are not these.
expert_cache::Costs planned_costs(const std::vector<PlannedDevice>& devices,
                                  const std::vector<engine::ExpertKind>& kinds, const CostSetting& setting);

}  // namespace coterie::cli::plan
