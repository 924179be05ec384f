#include "cli/plan/machine.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "base/thread_pool.h"
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
        devices.push_back({.facts = {info.name, info.memory_bytes}});
    }
    return devices;
}

struct CpuRates {
    double read_bytes_per_second;
    double multiply_adds_per_second;
};

CpuRates measure(const CostSetting& setting) {
    ThreadPool threads(setting.threads);
    const double peak = cpu::measure_integer_dot_peak(threads) / 2;  // a product and a sum are one
    const double read =
        setting.ram_bytes_per_second > 0 ? setting.ram_bytes_per_second : cpu::measure_read_rate(threads);
    return {read, kShareOfPeak * peak};
}

std::vector<ComputeCosts> compute_costs(const std::vector<engine::ExpertKind>& kinds, double rate) {
    std::vector<ComputeCosts> costs;
    for (const engine::ExpertKind& kind : kinds) {
        costs.push_back({.expert_seconds = 0, .row_seconds = static_cast<double>(kind.multiply_adds) / rate});
    }
    return costs;
}

/// Both of two readers of RAM get at least half of it.
DeviceCosts device_costs(const PlannedDevice& device, const CostSetting& setting, double ram) {
    DeviceCosts costs;
    costs.link_bytes_per_second =
        device.link_bytes_per_second > 0 ? device.link_bytes_per_second : kAssumedLinkRate;
    costs.contended_link_bytes_per_second = std::min(costs.link_bytes_per_second, ram / 2);
    costs.copy_seconds = device.copy_seconds;
    costs.memory_bytes_per_second =
        device.memory_bytes_per_second > 0 ? device.memory_bytes_per_second : setting.vram_bytes_per_second;
    costs.handoff_seconds = setting.handoff_seconds;
    return costs;
}

Costs measured_costs(const std::vector<PlannedDevice>& devices, const std::vector<engine::ExpertKind>& kinds,
                     const CostSetting& setting) {
    const CpuRates rates = measure(setting);
    Costs costs;
    for (const engine::ExpertKind& kind : kinds) costs.kinds.push_back(kind.name);
    costs.ram_bytes_per_second = rates.read_bytes_per_second;
    costs.cpu.read_bytes_per_second = rates.read_bytes_per_second;
    costs.cpu.handoff_seconds = setting.handoff_seconds;
    costs.cpu.compute = compute_costs(kinds, rates.multiply_adds_per_second);
    for (const PlannedDevice& device : devices) {
        costs.devices.push_back(device_costs(device, setting, costs.ram_bytes_per_second));
        costs.devices.back().compute = compute_costs(kinds, kDeviceSpeed * rates.multiply_adds_per_second);
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
