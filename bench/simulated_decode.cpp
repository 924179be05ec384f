// How near decoding comes to what the bytes alone would take, on a simulated RTX 3090 beside two channels of
// DDR4, for the experts of Qwen3-30B-A3B as Q4_K_M. docs/expert_cache_simulated.md explains the numbers.
// Usage: simulated_decode [TOKENS]

#include "expert_cache/simulation/simulated_decode.h"

#include <cstdlib>
#include <fmt/core.h>

namespace coterie::expert_cache {
namespace {

/// Seconds of a polled hand-off to the CPU and back, measured on a real machine: one word each way, and 2,048
/// floats each way by plain copies. What goes over is 2.3 KB of quantised activations and 8 KB a missed
/// expert back, which lies between the two by its bytes.
constexpr double kLeastHandoff = 5.5e-6;
constexpr double kHandoff = 12e-6;
constexpr double kLargestHandoff = 16e-6;

DecodeScenario desktop(double handoff_seconds) {
    DeviceCosts device;
    device.link_bytes_per_second = 24e9;
    device.contended_link_bytes_per_second = 21e9;  // half of RAM's rate
    device.copy_seconds = 5e-6;
    device.memory_bytes_per_second = 936e9;
    device.compute = {ComputeCosts{}};
    DecodeScenario scenario;
    scenario.costs.kinds = {"Q4_K, Q6_K"};
    scenario.costs.cpu.read_bytes_per_second = 42e9;
    scenario.costs.cpu.handoff_seconds = handoff_seconds;
    scenario.costs.cpu.compute = {ComputeCosts{}};
    scenario.costs.devices = {device};
    scenario.costs.ram_bytes_per_second = 42e9;
    scenario.expert_bytes = 2'857'000;  // the mean of both kinds of layers
    scenario.dense_bytes = 11'800'000;  // of 0.82 GB, without the output matrix
    return scenario;
}

/// The fewest slots that reach the hit rate.
DecodeScenario with_hits(DecodeScenario scenario, double hit_rate) {
    const std::int64_t tokens = scenario.tokens;
    scenario.tokens = 256;
    std::int32_t low = 1;
    std::int32_t high = scenario.routing.experts;
    while (low < high) {
        scenario.slots = (low + high) / 2;
        simulate_decode(scenario).hit_rate() >= hit_rate ? high = scenario.slots : low = scenario.slots + 1;
    }
    scenario.slots = low;
    scenario.tokens = tokens;
    return scenario;
}

void print_row(const DecodeScenario& scenario) {
    const DecodeOutcome outcome = simulate_decode(scenario);
    const double tokens = static_cast<double>(scenario.tokens);
    const double layers = tokens * scenario.layers;
    fmt::print(
        "{:>7.1f} us {:>5.1f} {:>5} {:>6} {:>6.1f}% {:>8.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>8.1f}% "
        "{:>6.1f}%\n",
        1e6 * scenario.costs.cpu.handoff_seconds, scenario.fetch_gain, scenario.chunk_bytes >> 10,
        scenario.slots, 100 * outcome.hit_rate(), static_cast<double>(outcome.fetches) / tokens,
        static_cast<double>(outcome.uploads) / tokens, 1e6 * outcome.ideal_expert_seconds / layers,
        1e6 * outcome.expert_seconds / layers, 100 * outcome.expert_share(), 100 * outcome.token_share());
}

void run(std::int64_t tokens) {
    fmt::print("{:>10} {:>5} {:>5} {:>6} {:>7} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}\n", "hand-off", "gain",
               "KiB", "slots", "hits", "fetches", "uploads", "ideal us", "us/layer", "experts", "token");
    for (const double handoff : {kLeastHandoff, kHandoff, kLargestHandoff}) {
        for (const double hit_rate : {0.75, 0.90, 0.95}) {
            for (const double gain : {0.0, 0.3}) {
                DecodeScenario scenario = desktop(handoff);
                scenario.tokens = tokens;
                scenario.fetch_gain = gain;
                print_row(with_hits(scenario, hit_rate));
            }
        }
    }
    // Around the defaults: how large chunks should be, and what a fetch is worth.
    for (const double hit_rate : {0.75, 0.90, 0.95}) {
        const DecodeScenario scenario = with_hits(desktop(kHandoff), hit_rate);
        for (const std::uint64_t kib : {64, 128, 256, 512, 1024}) {
            DecodeScenario changed = scenario;
            changed.tokens = tokens;
            changed.chunk_bytes = kib << 10;
            print_row(changed);
        }
        for (const double gain : {0.1, 0.2, 0.3, 0.5, 0.7, 1.0}) {
            DecodeScenario changed = scenario;
            changed.tokens = tokens;
            changed.fetch_gain = gain;
            print_row(changed);
        }
    }
}

}  // namespace
}  // namespace coterie::expert_cache

int main(int argc, char** argv) { coterie::expert_cache::run(argc > 1 ? std::atoll(argv[1]) : 1024); }
