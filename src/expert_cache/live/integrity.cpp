#include "base/error.h"
#include "expert_cache/expert_cache.h"
#include "expert_cache/live/cache_state.h"

namespace coterie::expert_cache {
namespace {

/// Each resident slot of a device that is there is named by the table, and no other.
void check_slots(const CacheState& state, const DeviceCache& device, std::int32_t layer) {
    for (std::int32_t slot = 0; slot < device.slots.slots(layer); ++slot) {
        const SlotState holds = device.slots.state(layer, slot);
        if (holds == SlotState::Free) continue;
        const auto place = state.residency.find({layer, device.slots.expert(layer, slot)});
        const bool named = place && place->device == device.device_number && place->slot == slot;
        COTERIE_CHECK(named == (holds == SlotState::Resident));
    }
}

void check_experts(const CacheState& state, std::int32_t layer) {
    const auto index = static_cast<std::size_t>(layer);
    for (std::int32_t expert = 0; expert < state.layers[index].experts; ++expert) {
        const auto place = state.residency.find({layer, expert});
        COTERIE_CHECK(!state.doomed.has({layer, expert}) || place);
        COTERIE_CHECK(!state.arriving.has({layer, expert}) || !place);
        for (const auto& device : state.devices) {
            const bool here = place && place->device == device->device_number;
            COTERIE_CHECK(device->residents.has({layer, expert}) == here);
        }
        COTERIE_CHECK(!place || !state.host || state.host->find({layer, expert}) == nullptr);
        if (!place) continue;
        const DeviceCache& device = *state.devices[static_cast<std::size_t>(place->device)];
        COTERIE_CHECK(device.slots.state(layer, place->slot) == SlotState::Resident);
        COTERIE_CHECK(device.slots.expert(layer, place->slot) == expert);
    }
}

}  // namespace

void ExpertCache::check_integrity() const {
    const std::lock_guard lock(state_->mutex);
    if (state_->host) state_->host->check_integrity();
    for (const auto& device : state_->devices) {
        device->slots.check_integrity();
        if (device->out.load()) continue;
        for (std::int32_t layer = 0; layer < state_->layer_count(); ++layer) {
            check_slots(*state_, *device, layer);
        }
    }
    for (std::int32_t layer = 0; layer < state_->layer_count(); ++layer) check_experts(*state_, layer);
}

}  // namespace coterie::expert_cache
