#include "cli/plan/machine.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/probe/machine_cache.h"
#include "cli/text_input.h"
#include "devices/device.h"
#include "devices/fake_spec.h"
#include "expert_cache/costs/costs_json.h"
#include "kernels/cpu/integer_peak.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::cli::plan {
namespace {

using expert_cache::ComputeCosts;
using expert_cache::Costs;
using expert_cache::DeviceCosts;

/// A link of which nothing is known: PCIe 4.0 with 16 lanes.
constexpr double kAssumedLinkRate = 24e9;
/// The share of the peak of 8-bit products that products with weights reach.
constexpr double kShareOfPeak = 0.5;
/// Devices have at least this many times the CPU's arithmetic.
constexpr double kDeviceSpeed = 20;

std::vector<PlannedDevice> fake_devices(const std::string& text) {
    std::vector<PlannedDevice> devices;
    for (const FakeDeviceSpec& spec : parse_fake_devices(text)) {
        devices.push_back({.facts = {fmt::format("fake {}", devices.size()), spec.memory_bytes},
                           .link_bytes_per_second = spec.link_rate,
                           .copy_seconds = 1e-9 * static_cast<double>(spec.latency.count()),
                           .memory_bytes_per_second = spec.memory_rate});
    }
    return devices;
}

std::vector<PlannedDevice> real_devices() {
    std::vector<PlannedDevice> devices;
    for (const DeviceInfo& info : list_devices().devices) {
        devices.push_back({.facts = {info.name, info.memory_bytes}, .gpu = info.index});
    }
    return devices;
}

using Profile = std::optional<engine::MachineProfile>;

struct CpuRates {
    double read_bytes_per_second;
    double multiply_adds_per_second;
};

CpuRates cpu_rates(const CostSetting& setting, const Profile& profile) {
    double read = setting.ram_bytes_per_second;
    if (profile) {
        if (read == 0) read = profile->ram_read_rate();
        return {read, kShareOfPeak * profile->integer_peak / 2};  // a product and a sum are one
    }
    ThreadPool threads(setting.threads);
    const double peak = cpu::measure_integer_dot_peak(threads) / 2;
    return {read > 0 ? read : cpu::measure_read_rate(threads), kShareOfPeak * peak};
}

ComputeCosts assumed_compute(const engine::ExpertKind& kind, double rate) {
    return {.expert_seconds = 0, .row_seconds = static_cast<double>(kind.multiply_adds) / rate};
}

ComputeCosts cpu_compute(const engine::ExpertKind& kind, double rate, const Profile& profile) {
    const engine::ExpertTimes* times = profile ? profile->find(kind.name) : nullptr;
    return times != nullptr ? engine::compute_costs(*times, *profile) : assumed_compute(kind, rate);
}

/// Both of two readers of RAM get at least half of it.
void set_link(const PlannedDevice& device, double ram, const Profile& profile, DeviceCosts& costs) {
    if (const engine::GpuTimes* gpu = profile ? profile->find_gpu(device.gpu) : nullptr) {
        costs.link_bytes_per_second = gpu->to_device;
        costs.contended_link_bytes_per_second = std::min(gpu->to_device, gpu->contended_to_device);
        return;
    }
    costs.link_bytes_per_second =
        device.link_bytes_per_second > 0 ? device.link_bytes_per_second : kAssumedLinkRate;
    costs.contended_link_bytes_per_second = std::min(costs.link_bytes_per_second, ram / 2);
}

DeviceCosts device_costs(const PlannedDevice& device, const CostSetting& setting) {
    DeviceCosts costs;
    costs.copy_seconds = device.copy_seconds;
    costs.memory_bytes_per_second =
        device.memory_bytes_per_second > 0 ? device.memory_bytes_per_second : setting.vram_bytes_per_second;
    costs.handoff_seconds = setting.handoff_seconds;
    return costs;
}

Costs measured_costs(const std::vector<PlannedDevice>& devices, const std::vector<engine::ExpertKind>& kinds,
                     const CostSetting& setting) {
    const Profile profile = cached_machine_profile(setting.threads);
    const CpuRates rates = cpu_rates(setting, profile);
    const double speed = rates.multiply_adds_per_second;
    Costs costs;
    costs.cpu.read_bytes_per_second = rates.read_bytes_per_second;
    costs.cpu.handoff_seconds = setting.handoff_seconds;
    const bool measured = profile && setting.ram_bytes_per_second == 0 && !devices.empty();
    costs.ram_bytes_per_second = measured ? profile->ram_rate() : rates.read_bytes_per_second;
    for (const engine::ExpertKind& kind : kinds) {
        costs.kinds.push_back(kind.name);
        costs.cpu.compute.push_back(cpu_compute(kind, speed, profile));
    }
    for (const PlannedDevice& device : devices) {
        DeviceCosts& at = costs.devices.emplace_back(device_costs(device, setting));
        set_link(device, rates.read_bytes_per_second, profile, at);
        for (const engine::ExpertKind& kind : kinds)
            at.compute.push_back(assumed_compute(kind, kDeviceSpeed * speed));
    }
    return costs;
}

Costs costs_from_file(const std::vector<PlannedDevice>& devices, const std::vector<engine::ExpertKind>& kinds,
                      const std::string& file) {
    Costs costs = expert_cache::costs_from_json(read_text_file(file), file);
    if (costs.devices.size() != devices.size()) {
        fail(ErrorCode::InvalidArgument, "{}: the costs are of {} devices, there are {}", file,
             costs.devices.size(), devices.size());
    }
    for (std::size_t i = 0; i < std::max(kinds.size(), costs.kinds.size()); ++i) {
        const std::string has = i < costs.kinds.size() ? costs.kinds[i] : "nothing";
        const std::string needs = i < kinds.size() ? kinds[i].name : "nothing";
        if (has == needs) continue;
        fail(ErrorCode::InvalidArgument, "{}: kind {} of experts is '{}', the model has '{}'", file, i, has,
             needs);
    }
    return costs;
}

}  // namespace

std::vector<PlannedDevice> planned_devices(const std::string& fake_gpu) {
    return fake_gpu.empty() ? real_devices() : fake_devices(fake_gpu);
}

Costs planned_costs(const std::vector<PlannedDevice>& devices, const std::vector<engine::ExpertKind>& kinds,
                    const CostSetting& setting) {
    if (!setting.file.empty()) return costs_from_file(devices, kinds, setting.file);
    Costs costs = measured_costs(devices, kinds, setting);
    expert_cache::check_costs(costs, "--ram-rate, --vram-rate or --handoff");
    return costs;
}

}  // namespace coterie::cli::plan
