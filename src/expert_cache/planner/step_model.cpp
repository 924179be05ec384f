#include "expert_cache/planner/step_model.h"

#include <algorithm>

namespace coterie::expert_cache {
namespace {

DeviceState state_of(const DeviceCosts& device, std::size_t kind, double bytes, bool home) {
    return {.compute = &device.compute[kind],
            .read_seconds = bytes / device.memory_bytes_per_second,
            .copy_seconds = device.copy_seconds + bytes / device.link_bytes_per_second,
            .contended_copy_seconds = device.copy_seconds + bytes / device.contended_link_bytes_per_second,
            .handoff_seconds = home ? 0 : device.handoff_seconds};
}

/// Takes one expert of a sum; the last one takes what rounding left, too.
void take(std::int32_t& count, double& sum, double seconds) {
    --count;
    sum = count == 0 ? 0 : sum - seconds;
}

}  // namespace

StepModel::StepModel(const StepProblem& problem, const Costs& costs, std::span<DeviceState> devices)
    : devices_(devices),
      cpu_compute_(&costs.cpu.compute[static_cast<std::size_t>(problem.kind)]),
      cpu_read_seconds_(static_cast<double>(problem.expert_bytes) / costs.cpu.read_bytes_per_second),
      ram_read_seconds_(static_cast<double>(problem.expert_bytes) / costs.ram_bytes_per_second),
      handoff_seconds_(problem.home == kNoDevice ? 0 : costs.cpu.handoff_seconds) {
    for (std::size_t device = 0; device < devices.size(); ++device) {
        devices[device] = state_of(costs.devices[device], static_cast<std::size_t>(problem.kind),
                                   static_cast<double>(problem.expert_bytes),
                                   problem.home == static_cast<std::int32_t>(device));
    }
}

void StepModel::add(const UsedExpert& used, Assignment work) {
    if (work.work == Work::Cpu) {
        ++cpu_experts_;
        cpu_seconds_ += cpu_expert_seconds(used);
        return;
    }
    DeviceState& device = devices_[static_cast<std::size_t>(work.device)];
    const double seconds = expert_seconds(*device.compute, device.read_seconds, used.tokens);
    if (work.work == Work::Resident) {
        ++device.residents;
        device.resident_seconds += seconds;
        return;
    }
    if (device.fetched++ == 0) ++fetching_devices_;
    device.fetched_seconds += seconds;
    ++fetched_;
    fetch_gain_seconds_ += static_cast<double>(used.fetch_gain_seconds);
}

void StepModel::remove(const UsedExpert& used, Assignment work) {
    if (work.work == Work::Cpu) {
        take(cpu_experts_, cpu_seconds_, cpu_expert_seconds(used));
        return;
    }
    DeviceState& device = devices_[static_cast<std::size_t>(work.device)];
    const double seconds = expert_seconds(*device.compute, device.read_seconds, used.tokens);
    if (work.work == Work::Resident) {
        take(device.residents, device.resident_seconds, seconds);
        return;
    }
    take(device.fetched, device.fetched_seconds, seconds);
    if (device.fetched == 0) --fetching_devices_;
    take(fetched_, fetch_gain_seconds_, static_cast<double>(used.fetch_gain_seconds));
}

double StepModel::device_finish(const DeviceState& device) const {
    if (device.residents + device.fetched == 0) return 0;
    const double computing = device.resident_seconds + device.fetched_seconds;
    if (device.fetched == 0) return device.handoff_seconds + computing;
    const bool contended = cpu_experts_ > 0 || fetching_devices_ > 1;
    const double copy = contended ? device.contended_copy_seconds : device.copy_seconds;
    const double count = device.fetched;
    const double fetched =
        std::max(copy + device.fetched_seconds, count * copy + device.fetched_seconds / count);
    return device.handoff_seconds + std::max(computing, handoff_seconds_ + fetched);
}

StepScore StepModel::score() const {
    const double cpu = cpu_finish();
    const double ram = ram_finish();
    StepScore score{.cost = 0, .finish = std::max(cpu, ram), .busy = cpu + ram};
    for (const DeviceState& device : devices_) {
        const double seconds = device_finish(device);
        score.finish = std::max(score.finish, seconds);
        score.busy += seconds;
    }
    score.cost = score.finish - fetch_gain_seconds_;
    return score;
}

}  // namespace coterie::expert_cache
