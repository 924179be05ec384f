#include "cli/bench/cache_use.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "engine/forward/device_forward.h"
#include "engine/offload.h"

namespace coterie::cli::bench {
namespace {

/// Calls f with each count of a and b.
template <typename F>
CacheUse combine(const CacheUse& a, const CacheUse& b, F f) {
    return {.hits = f(a.hits, b.hits),
            .misses = f(a.misses, b.misses),
            .cpu_bytes = f(a.cpu_bytes, b.cpu_bytes),
            .slot_bytes = f(a.slot_bytes, b.slot_bytes),
            .fetched_bytes = f(a.fetched_bytes, b.fetched_bytes),
            .uploaded_bytes = f(a.uploaded_bytes, b.uploaded_bytes),
            .streamed_bytes = f(a.streamed_bytes, b.streamed_bytes),
            .linked_bytes = f(a.linked_bytes, b.linked_bytes),
            .cpu_uses = f(a.cpu_uses, b.cpu_uses)};
}

CacheUse device_use(engine::DeviceForward& device) {
    CacheUse use;
    if (device.cache() == nullptr) return use;
    const expert_cache::CacheStatistics cache = device.cache()->statistics();
    use.hits = cache.hits;
    use.misses = cache.misses;
    for (const expert_cache::DeviceStatistics& one : cache.devices) use.uploaded_bytes += one.uploaded_bytes;
    const engine::DeviceCounts did = device.statistics().all;
    use.streamed_bytes = did.streamed_bytes;
    use.cpu_bytes = did.cpu_bytes;
    use.cpu_uses = did.missed;
    return use;
}

/// Bytes of an expert, on the average of a token's uses.
std::uint64_t mean_expert_bytes(const models::Model& model) {
    std::int64_t bytes = 0;
    std::int64_t uses = 0;
    for (const models::Layer& layer : model.layers) {
        const auto* moe = std::get_if<models::MoeFfn>(&layer.ffn);
        if (moe == nullptr) continue;
        uses += moe->routing.used;
        for (const models::ExpertMatrix* matrix : {&moe->gate, &moe->up, &moe->down})
            bytes += moe->routing.used * matrix->bytes_per_expert();
    }
    return uses == 0 ? 0 : static_cast<std::uint64_t>(bytes / uses);
}

}  // namespace

double CacheUse::hit_rate() const {
    return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
}

CacheUse cache_use(engine::Engine& engine) {
    CacheUse use;
    if (engine.device() != nullptr) return device_use(*engine.device());
    if (engine.offload() == nullptr) return use;
    const expert_cache::CacheStatistics cache = engine.offload()->cache().statistics();
    const engine::HybridStatistics& did = engine.offload()->experts().statistics();
    std::uint64_t arrived = 0;
    std::uint64_t fetched = 0;
    for (const auto& device : cache.devices) {
        arrived += device.uploaded_bytes;
        fetched += device.fetched_bytes;
    }
    use.hits = cache.hits;
    use.misses = cache.misses;
    use.cpu_bytes = did.on_cpu.bytes;
    use.slot_bytes = did.in_place.bytes;
    use.fetched_bytes = fetched;
    use.uploaded_bytes = arrived - fetched;
    use.streamed_bytes = did.streamed.bytes;
    return use;
}

CacheUse operator-(const CacheUse& later, const CacheUse& earlier) {
    return combine(later, earlier, [](std::uint64_t a, std::uint64_t b) { return a - b; });
}

CacheUse operator+(const CacheUse& a, const CacheUse& b) {
    return combine(a, b, [](std::uint64_t x, std::uint64_t y) { return x + y; });
}

void add_kernel_reads(engine::Engine& engine, CacheUse& use) {
    if (engine.device() == nullptr) return;
    const std::uint64_t expert = mean_expert_bytes(engine.model());
    use.slot_bytes = use.hits * expert;
    use.linked_bytes = (use.misses - std::min(use.misses, use.cpu_uses)) * expert;
}

PathRates path_rates(const engine::MachineProfile& machine, std::span<const std::string> gpus) {
    PathRates rates{.ram = machine.ram_rate()};
    double seconds_per_byte = 0;
    for (const std::string& name : gpus) {
        const auto known = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                        [&](const engine::GpuTimes& times) { return times.name == name; });
        if (known == machine.gpus.end()) return {};
        rates.links += known->to_device;
        seconds_per_byte += 1 / known->own_memory;
    }
    if (!gpus.empty()) rates.devices = static_cast<double>(gpus.size()) / seconds_per_byte;
    return rates;
}

PathRates path_rates(engine::Engine& engine, const engine::MachineProfile* machine) {
    if (engine::DeviceForward* forward = engine.device()) {
        std::vector<std::string> names;
        for (int i = 0; i < forward->devices(); ++i) names.push_back(forward->device_name(i));
        return machine != nullptr ? path_rates(*machine, names) : PathRates();
    }
    PathRates rates;
    if (engine.offload() == nullptr) return rates;
    const expert_cache::Costs& costs = engine.offload()->experts().costs();
    rates.ram = std::max(costs.ram_bytes_per_second, costs.cpu.read_bytes_per_second);
    for (const expert_cache::DeviceCosts& device : costs.devices) {
        rates.links += device.link_bytes_per_second;
        rates.devices += device.memory_bytes_per_second;
    }
    return rates;
}

double limit_seconds(const CacheUse& use, const PathRates& rates, const DenseBytes& dense) {
    if (rates.ram <= 0 || rates.links <= 0 || rates.devices <= 0) return 0;
    const auto link = static_cast<double>(use.link_bytes());
    const double ram = dense.cpu + static_cast<double>(use.cpu_bytes) + link;
    const double device = dense.device + static_cast<double>(use.slot_bytes) +
                          static_cast<double>(use.fetched_bytes + use.streamed_bytes);
    return std::max({ram / rates.ram, link / rates.links, device / rates.devices});
}

}  // namespace coterie::cli::bench
