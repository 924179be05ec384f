#include "scheduler/cache_view.h"

#include <fstream>
#include <unistd.h>

#include "engine/offload.h"

namespace coterie::scheduler {
namespace {

std::uint64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    file >> total >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

DeviceView view_of(const expert_cache::DeviceStatistics& device) {
    return {.hits = device.hits,
            .uploads = device.uploads,
            .fetches = device.fetches,
            .moved_bytes = device.uploaded_bytes,
            .paid_back = device.paid_back,
            .evictions = device.evictions,
            .failures = device.failures,
            .waited_seconds = std::chrono::duration<double>(device.waited).count(),
            .resident = device.resident,
            .slot_bytes = device.mapped_bytes,
            .lost = device.lost};
}

void locate(LayerView& view, const expert_cache::ExpertCache& cache, std::size_t devices) {
    for (std::int32_t device = 0; device < static_cast<std::int32_t>(devices); ++device) {
        view.slots.push_back(cache.slots(device, view.layer));
    }
    for (std::size_t expert = 0; expert < view.device.size(); ++expert) {
        const auto found = cache.find({view.layer, static_cast<std::int32_t>(expert)});
        if (found) view.device[expert] = found->device;
    }
}

}  // namespace

CacheView read_cache(const Scheduler& scheduler) {
    engine::Engine& engine = scheduler.engine();
    const engine::ExpertCatalog catalog(engine.model());
    CacheView view;
    view.model_bytes = engine.archive().total_bytes();
    view.kv_bytes = static_cast<std::uint64_t>(engine.pages()) * engine.layout().page_bytes();
    view.kv_used_bytes =
        static_cast<std::uint64_t>(scheduler.counters().pages_used.load()) * engine.layout().page_bytes();
    view.resident_ram_bytes = resident_bytes();
    const expert_cache::ExpertCache* cache = scheduler.expert_usage().cache();
    if (cache) {
        const expert_cache::CacheStatistics statistics = cache->statistics();
        view.hits = statistics.hits;
        view.misses = statistics.misses;
        for (const auto& device : statistics.devices) view.devices.push_back(view_of(device));
    }
    for (int layer = 0; layer < catalog.layers(); ++layer) {
        const expert_cache::LayerShape& shape = catalog.shapes()[static_cast<std::size_t>(layer)];
        if (shape.experts == 0) continue;
        LayerView one;
        one.layer = layer;
        one.expert_bytes = shape.expert_bytes;
        one.device.assign(static_cast<std::size_t>(shape.experts), -1);
        one.uses = scheduler.expert_usage().uses(layer);
        one.misses = scheduler.expert_usage().misses(layer);
        if (cache) locate(one, *cache, view.devices.size());
        view.expert_bytes += shape.expert_bytes * static_cast<std::uint64_t>(shape.experts);
        view.layers.push_back(std::move(one));
    }
    return view;
}

}  // namespace coterie::scheduler
