#include <chrono>
#include <nlohmann/json.hpp>

#include "scheduler/cache_view.h"
#include "scheduler/plan_view.h"
#include "server/api/endpoints.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

Json device_json(const scheduler::DeviceView& device, std::size_t index) {
    return {{"id", index},
            {"resident", device.resident},
            {"slot_bytes", device.slot_bytes},
            {"hits", device.hits},
            {"uploads", device.uploads},
            {"fetches", device.fetches},
            {"moved_bytes", device.moved_bytes},
            {"paid_back", device.paid_back},
            {"evictions", device.evictions},
            {"failures", device.failures},
            {"waited_ms", 1e3 * device.waited_seconds},
            {"lost", device.lost}};
}

Json layer_json(const scheduler::LayerView& layer) {
    return {{"layer", layer.layer},  {"experts", layer.device.size()}, {"expert_bytes", layer.expert_bytes},
            {"slots", layer.slots},  {"device", layer.device},         {"uses", layer.uses},
            {"misses", layer.misses}};
}

Json work_json(const scheduler::Counters& counters) {
    return {{"waiting", counters.waiting.load()},
            {"running", counters.running.load()},
            {"prompt_tokens", counters.prompt_tokens.load()},
            {"cached_tokens", counters.cached_tokens.load()},
            {"generated_tokens", counters.generated_tokens.load()},
            {"kept_sequences", counters.kept_sequences.load()}};
}

Json cache_json(const Service& service, double seconds) {
    const scheduler::CacheView view = scheduler::read_cache(service.scheduler());
    Json devices = Json::array();
    for (std::size_t i = 0; i < view.devices.size(); ++i) devices.push_back(device_json(view.devices[i], i));
    Json layers = Json::array();
    for (const scheduler::LayerView& layer : view.layers) layers.push_back(layer_json(layer));
    return {{"seconds", seconds},
            {"model", service.facts().id},
            {"experts_used", service.facts().experts_used},
            {"hits", view.hits},
            {"misses", view.misses},
            {"work", work_json(service.scheduler().counters())},
            {"memory",
             {{"model_bytes", view.model_bytes},
              {"expert_bytes", view.expert_bytes},
              {"dense_bytes", view.model_bytes - std::min(view.expert_bytes, view.model_bytes)},
              {"kv_bytes", view.kv_bytes},
              {"kv_used_bytes", view.kv_used_bytes},
              {"ram_bytes", view.resident_ram_bytes}}},
            {"devices", std::move(devices)},
            {"layers", std::move(layers)}};
}

Json memory_json(const scheduler::MemoryView& memory) {
    return {{"name", memory.name},
            {"capacity_bytes", memory.capacity_bytes},
            {"link_bytes_per_second", memory.link_bytes_per_second},
            {"dense_bytes", memory.dense_bytes},
            {"kv_bytes", memory.kv_bytes},
            {"workspace_bytes", memory.workspace_bytes},
            {"expert_bytes", memory.expert_bytes}};
}

Json plan_json(const Service& service) {
    const scheduler::PlanView view = scheduler::read_plan(service.scheduler());
    const ModelFacts& facts = service.facts();
    Json devices = Json::array();
    for (const scheduler::MemoryView& device : view.devices) devices.push_back(memory_json(device));
    Json layers = Json::array();
    for (const scheduler::LayerWeights& layer : view.layers) {
        layers.push_back({{"dense_bytes", layer.dense_bytes},
                          {"expert_bytes", layer.expert_bytes},
                          {"experts", layer.experts},
                          {"slots", layer.slots}});
    }
    return {{"model",
             {{"id", facts.id},
              {"architecture", facts.architecture},
              {"bytes", facts.bytes},
              {"experts", facts.experts},
              {"experts_used", facts.experts_used}}},
            {"context", facts.context},
            {"exclusive", view.exclusive},
            {"devices", std::move(devices)},
            {"ram", memory_json(view.ram)},
            {"layers", std::move(layers)}};
}

HttpResponse fresh(const Json& body) {
    return {.body = dump(body), .headers = {{"Cache-Control", "no-store"}}};
}

}  // namespace

void add_cache(Router& router, Service& service) {
    const auto start = std::chrono::steady_clock::now();
    router.add("GET", "/cache", [&service, start](const HttpRequest&, const std::string&) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        return fresh(cache_json(service, seconds.count()));
    });
    router.add("GET", "/plan",
               [&service](const HttpRequest&, const std::string&) { return fresh(plan_json(service)); });
}

}  // namespace coterie::server
