#include "cli/bench/cache_use.h"

#include <algorithm>

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
            .streamed_bytes = f(a.streamed_bytes, b.streamed_bytes)};
}

CacheUse device_use(engine::DeviceForward& device) {
    CacheUse use;
    if (device.cache() == nullptr) return use;
    const expert_cache::CacheStatistics cache = device.cache()->statistics();
    use.hits = cache.hits;
    use.misses = cache.misses;
    for (const expert_cache::DeviceStatistics& one : cache.devices) use.uploaded_bytes += one.uploaded_bytes;
    use.streamed_bytes = device.statistics().all.streamed_bytes;
    return use;
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

PathRates path_rates(engine::Engine& engine) {
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

double limit_seconds(const CacheUse& use, const PathRates& rates, double dense_bytes) {
    const auto link = static_cast<double>(use.link_bytes());
    const double ram = dense_bytes + static_cast<double>(use.cpu_bytes) + link;
    const double device =
        static_cast<double>(use.slot_bytes) + static_cast<double>(use.fetched_bytes + use.streamed_bytes);
    return std::max({ram / rates.ram, link / rates.links, device / rates.devices});
}

}  // namespace coterie::cli::bench
