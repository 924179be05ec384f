#include "engine/probe/machine_profile.h"

#include <algorithm>

namespace coterie::engine {

double MachineProfile::ram_rate() const {
    double rate = ram_read_rate();
    for (const GpuTimes& gpu : gpus) rate = std::max(rate, gpu.contended_to_device + gpu.contended_ram_read);
    return rate;
}

const ExpertTimes* MachineProfile::find(const std::string& kind) const {
    const auto found = std::find_if(experts.begin(), experts.end(),
                                    [&](const ExpertTimes& times) { return times.kind == kind; });
    return found == experts.end() ? nullptr : &*found;
}

const GpuTimes* MachineProfile::find_gpu(int index) const {
    const auto found =
        std::find_if(gpus.begin(), gpus.end(), [&](const GpuTimes& gpu) { return gpu.index == index; });
    return found == gpus.end() ? nullptr : &*found;
}

expert_cache::ComputeCosts compute_costs(const ExpertTimes& times, const MachineProfile& profile) {
    constexpr std::size_t kLast = kProbedTokens.size() - 1;
    // Where eight tokens still wait for RAM, the slope says nothing; cores are never faster than their peak.
    const double slope = (times.seconds[kLast] - times.seconds[kLast - 1]) /
                         static_cast<double>(kProbedTokens[kLast] - kProbedTokens[kLast - 1]);
    const double least = 2.0 * static_cast<double>(times.multiply_adds) / profile.integer_peak;
    const double row = std::max(slope, least);
    const double read = static_cast<double>(times.bytes) / profile.ram_read_rate();
    return {.expert_seconds = std::max(0.0, times.seconds[0] - std::max(read, row)), .row_seconds = row};
}

}  // namespace coterie::engine
