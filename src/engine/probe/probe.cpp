#include "engine/probe/probe.h"

#include <ctime>
#include <fmt/chrono.h>
#include <fstream>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/probe/crowd_watch.h"
#include "engine/probe/gpu_probe.h"
#include "engine/probe/median.h"
#include "kernels/cpu/integer_peak.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/memory_bandwidth.h"

namespace coterie::engine {
namespace {

constexpr int kReadRounds = 5;

/// 1, 2, 4 ... and all.
std::vector<int> thread_counts(int all) {
    std::vector<int> counts;
    for (int threads = 1; threads < all; threads *= 2) counts.push_back(threads);
    counts.push_back(all);
    return counts;
}

ReadRate measure_reads(ThreadPool& pool) {
    cpu::MemoryReader reader(pool);
    return {pool.size(), median_of(kReadRounds, [&] { return reader.pass(); })};
}

void measure_cpu(MachineProfile& profile) {
    const CrowdWatch watch(profile.crowded);
    for (const int threads : thread_counts(profile.machine.threads)) {
        ThreadPool pool(threads);
        profile.ram_reads.push_back(measure_reads(pool));
    }
    ThreadPool pool(profile.machine.threads);
    profile.integer_peak = cpu::measure_integer_dot_peak(pool);
}

ExpertTimes measure_expert(const ProbeExperts& experts, ThreadPool& pool, bool& crowded) {
    const CrowdWatch watch(crowded);
    return experts.measure(pool);
}

/// Machines may have an old card beside the one that counts.
void add_gpu(const DeviceInfo& gpu, ThreadPool& pool, MachineProfile& profile) {
    try {
        profile.gpus.push_back(measure_gpu(gpu, pool));
    } catch (const Error& error) {
        if (error.code() != ErrorCode::Unsupported) throw;
        log::warn("{}; it is left out", error.what());
    }
}

}  // namespace

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

MachineIdentity this_machine(const std::string& program, int threads, std::span<const DeviceInfo> gpus) {
    MachineIdentity machine;
    machine.program = program;
    machine.processor = processor_name();
    machine.instruction_set = cpu::kernels().name;
    machine.threads = threads > 0 ? threads : available_physical_cores();
    machine.ram_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    for (const DeviceInfo& gpu : gpus) machine.gpus.push_back(gpu.uuid);
    return machine;
}

MachineProfile measure_machine(const MachineIdentity& machine, std::span<const DeviceInfo> gpus,
                               std::span<const ExpertShape> experts) {
    MachineProfile profile;
    profile.machine = machine;
    profile.measured_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    measure_cpu(profile);
    {
        ThreadPool pool(machine.threads);
        for (const DeviceInfo& gpu : gpus) add_gpu(gpu, pool, profile);
    }
    add_experts(experts, profile);
    return profile;
}

void add_experts(std::span<const ExpertShape> experts, MachineProfile& profile) {
    ThreadPool pool(profile.machine.threads);
    for (const ExpertShape& shape : experts) {
        const ProbeExperts timed(pool, shape);
        profile.experts.push_back(measure_expert(timed, pool, profile.crowded));
        for (GpuTimes& gpu : profile.gpus)
            gpu.linked_expert_seconds.push_back(seconds_per_linked_expert(gpu.index, timed));
    }
}

std::vector<ExpertShape> missing_experts(std::span<const ExpertShape> experts,
                                         const MachineProfile& profile) {
    std::vector<ExpertShape> missing;
    for (const ExpertShape& shape : experts) {
        if (profile.find(shape.kind) == nullptr) missing.push_back(shape);
    }
    return missing;
}

}  // namespace coterie::engine
