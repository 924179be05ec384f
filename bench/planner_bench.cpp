// What planning one layer costs: the planner runs once per layer and step, between the routing and the work.
#include <chrono>
#include <cstdint>
#include <fmt/core.h>
#include <vector>

#include "base/split_mix.h"
#include "expert_cache/planner/plan_step.h"

namespace coterie::expert_cache {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kProblems = 512;  // so that branches are not learnt by heart
constexpr std::uint64_t kExpertBytes = 2'857'000;

struct Setting {
    const char* name;
    std::int32_t devices;
    std::int32_t used;
    std::int32_t max_tokens;
    double hit_rate;
};

Costs desktop_costs(std::int32_t devices) {
    Costs costs;
    costs.kinds = {"Q4_K"};
    costs.cpu = {.read_bytes_per_second = 42e9, .handoff_seconds = 15e-6, .compute = {{0, 20e-6}}};
    costs.ram_bytes_per_second = 44e9;
    DeviceCosts device;
    device.link_bytes_per_second = 24e9;
    device.contended_link_bytes_per_second = 20e9;
    device.copy_seconds = 8e-6;
    device.memory_bytes_per_second = 936e9;
    device.handoff_seconds = 40e-6;
    device.compute = {{0, 0.05e-6}};
    costs.devices.assign(static_cast<std::size_t>(devices), device);
    return costs;
}

std::vector<UsedExpert> random_experts(const Setting& setting, SplitMix64& random) {
    std::vector<UsedExpert> used;
    for (std::int32_t i = 0; i < setting.used; ++i) {
        const bool hit = static_cast<double>(random.next_float()) < setting.hit_rate;
        const auto draw = [&](std::int32_t count) {
            return static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(count));
        };
        used.push_back({.expert = i,
                        .tokens = 1 + draw(setting.max_tokens),
                        .device = hit ? draw(setting.devices) : kNoDevice});
    }
    return used;
}

/// Microseconds per plan: the fastest of several passes over all problems.
double measure(const Setting& setting) {
    SplitMix64 random(kSeed);
    const Costs costs = desktop_costs(setting.devices);
    const std::vector<std::int32_t> spare(static_cast<std::size_t>(setting.devices), 2);
    std::vector<std::vector<UsedExpert>> problems;
    for (std::size_t i = 0; i < kProblems; ++i) problems.push_back(random_experts(setting, random));
    StepWorkspace workspace(setting.used, setting.devices);
    std::vector<Assignment> assignments(static_cast<std::size_t>(setting.used));
    double best = 1e9;
    double sum = 0;
    for (int pass = 0; pass < 30; ++pass) {
        const auto begin = std::chrono::steady_clock::now();
        for (const auto& used : problems) {
            sum += plan_step({used, spare, kExpertBytes, 0, 0}, costs, workspace, assignments);
        }
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        best = std::min(best, taken.count() / static_cast<double>(kProblems));
    }
    return sum > 0 ? best : 0;
}

void run() {
    fmt::print("{:<40} {:>8} {:>6} {:>7} {:>10}\n", "plan_step", "devices", "used", "hits", "us/layer");
    for (const Setting& setting : {
             Setting{"decode", 1, 8, 1, 0.75},
             Setting{"decode", 1, 8, 1, 0.90},
             Setting{"decode", 1, 8, 1, 1.00},
             Setting{"decode", 2, 8, 1, 0.75},
             Setting{"decode", 2, 8, 1, 0.90},
             Setting{"decode", 4, 8, 1, 0.75},
             Setting{"4 tokens", 1, 28, 2, 0.90},
             Setting{"prompt", 1, 128, 200, 0.60},
             Setting{"prompt", 4, 128, 200, 0.60},
         }) {
        fmt::print("{:<40} {:>8} {:>6} {:>6.0f}% {:>10.2f}\n", setting.name, setting.devices, setting.used,
                   100 * setting.hit_rate, measure(setting));
    }
}

}  // namespace
}  // namespace coterie::expert_cache

int main() { coterie::expert_cache::run(); }
