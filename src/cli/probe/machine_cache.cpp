#include "cli/probe/machine_cache.h"

#include "base/error.h"
#include "base/log.h"
#include "cli/profile_path.h"
#include "engine/probe/machine_profile_file.h"
#include "engine/probe/probe.h"

namespace coterie::cli {
namespace {

void keep(const engine::MachineProfile& profile) {
    const std::string path = machine_profile_path(profile.machine);
    if (path.empty()) return;
    try {
        engine::save_machine_profile(profile, path);
    } catch (const Error& error) {
        log::warn("the machine's profile is not kept: {}", error.what());
    }
}

}  // namespace

engine::MachineIdentity machine_of(int threads, std::span<const DeviceInfo> gpus) {
    return engine::this_machine(COTERIE_VERSION, threads, gpus);
}

std::string machine_profile_path(const engine::MachineIdentity& machine) {
    const std::string folder = cache_folder();
    return folder.empty() ? folder : folder + "/" + engine::machine_profile_name(machine);
}

std::optional<engine::MachineProfile> cached_machine_profile(int threads) {
    auto profile = cached_machine_profile(machine_of(threads, list_devices().devices));
    if (profile && profile->crowded) {
        log::info(
            "the machine's profile was measured on busy cores; coterie probe --refresh makes a better one");
        profile.reset();
    }
    return profile;
}

std::optional<engine::MachineProfile> cached_machine_profile(const engine::MachineIdentity& machine) {
    const std::string path = machine_profile_path(machine);
    if (path.empty()) return std::nullopt;
    engine::MachineProfileLoad load = engine::load_machine_profile(path, machine);
    if (!load.ignored.empty()) log::warn("{}", load.ignored);
    return std::move(load.profile);
}

engine::MachineProfile measured_machine_profile(int threads, std::span<const DeviceInfo> gpus,
                                                std::span<const engine::ExpertShape> experts,
                                                Measure measure) {
    const engine::MachineIdentity machine = machine_of(threads, gpus);
    auto profile = measure == Measure::Again ? std::nullopt : cached_machine_profile(machine);
    if (!profile) {
        profile = engine::measure_machine(machine, gpus, experts);
    } else if (const auto missing = engine::missing_experts(experts, *profile); !missing.empty()) {
        engine::add_experts(missing, *profile);
    } else {
        return std::move(*profile);
    }
    keep(*profile);
    return std::move(*profile);
}

}  // namespace coterie::cli
