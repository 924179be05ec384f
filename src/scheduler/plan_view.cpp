#include "scheduler/plan_view.h"

#include <algorithm>
#include <unistd.h>

#include "engine/forward/device_forward.h"
#include "engine/offload.h"

namespace coterie::scheduler {
namespace {

std::uint64_t machine_bytes() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t less(std::uint64_t whole, std::uint64_t part) { return whole - std::min(whole, part); }

std::vector<MemoryView> simulated_devices(const engine::Engine& engine, const engine::Offload& offload) {
    const auto statistics = offload.cache().statistics();
    const std::uint64_t overhead = engine::Offload::overhead_bytes(engine.model(), engine.batch());
    std::vector<MemoryView> devices;
    for (std::size_t i = 0; i < statistics.devices.size(); ++i) {
        const FakeDeviceSpec& spec = offload.options().fake_devices[i];
        devices.push_back({.name = "GPU " + std::to_string(i) + " (simulated)",
                           .capacity_bytes = spec.memory_bytes,
                           .link_bytes_per_second = spec.link_rate,
                           .dense_bytes = 0,
                           .kv_bytes = 0,
                           .workspace_bytes = overhead,
                           .expert_bytes = statistics.devices[i].mapped_bytes});
    }
    return devices;
}

MemoryView gpu(const engine::DeviceForward& forward, int device) {
    const engine::DeviceMemoryUse use = forward.memory_use(device);
    return {.name = forward.device_name(device),
            .capacity_bytes = 0,
            .link_bytes_per_second = 0,
            .dense_bytes = use.dense_bytes,
            .kv_bytes = use.state_bytes,
            .workspace_bytes = use.workspace_bytes,
            .expert_bytes = use.slot_bytes};
}

std::vector<LayerWeights> layers_of(const expert_cache::ModelFacts& facts,
                                    const expert_cache::ExpertCache* cache, std::size_t devices) {
    std::vector<LayerWeights> layers;
    for (const expert_cache::LayerFacts& layer : facts.layers) {
        const auto index = static_cast<std::int32_t>(layers.size());
        LayerWeights& one =
            layers.emplace_back(LayerWeights{layer.dense_bytes, layer.expert_bytes, layer.experts, {}});
        if (!cache || layer.experts == 0) continue;
        for (std::size_t device = 0; device < devices; ++device) {
            one.slots.push_back(cache->slots(static_cast<std::int32_t>(device), index));
        }
    }
    return layers;
}

/// All that no device took, and the experts that RAM keeps beside them.
MemoryView ram_of(engine::Engine& engine, const expert_cache::ModelFacts& facts) {
    std::uint64_t experts = 0;
    for (const expert_cache::LayerFacts& layer : facts.layers) {
        experts += layer.expert_bytes * static_cast<std::uint64_t>(layer.experts);
    }
    MemoryView ram{.name = "RAM", .capacity_bytes = machine_bytes()};
    ram.dense_bytes = less(engine.archive().total_bytes(), experts);
    ram.kv_bytes = static_cast<std::uint64_t>(engine.pages()) * engine.layout().page_bytes();
    ram.workspace_bytes = facts.workspace_bytes;
    ram.expert_bytes = experts;
    if (const engine::Offload* offload = engine.offload()) {
        ram.expert_bytes = offload->options().exclusive_ram_bytes.value_or(experts);
    }
    if (const engine::DeviceForward* device = engine.device()) {
        for (int i = 0; i < device->devices(); ++i)
            ram.dense_bytes = less(ram.dense_bytes, device->memory_use(i).dense_bytes);
        ram.kv_bytes = 0;
    }
    return ram;
}

}  // namespace

PlanView read_plan(const Scheduler& scheduler) {
    engine::Engine& engine = scheduler.engine();
    const engine::PlacementFacts facts =
        engine::placement_facts(engine.model(), {.cache = {}, .batch = engine.window(), .snapshots = 0});
    PlanView view;
    view.ram = ram_of(engine, facts.model);
    const expert_cache::ExpertCache* cache = nullptr;
    if (const engine::Offload* offload = engine.offload()) {
        cache = &offload->cache();
        view.devices = simulated_devices(engine, *offload);
        view.exclusive = offload->options().exclusive_ram_bytes.has_value();
    } else if (engine::DeviceForward* device = engine.device()) {
        cache = device->cache();
        for (int i = 0; i < device->devices(); ++i) view.devices.push_back(gpu(*device, i));
    }
    view.layers = layers_of(facts.model, cache, view.devices.size());
    return view;
}

}  // namespace coterie::scheduler
