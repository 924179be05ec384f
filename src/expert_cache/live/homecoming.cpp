#include "expert_cache/live/homecoming.h"

#include <algorithm>

#include "base/error.h"
#include "expert_cache/live/eviction.h"

namespace coterie::expert_cache {
namespace {

Return* free_return(DeviceCache& device) {
    const auto found = std::find_if(device.returns.begin(), device.returns.end(),
                                    [](const Return& back) { return !back.under_way; });
    return found == device.returns.end() ? nullptr : &*found;
}

bool on_its_way(const DeviceCache& device, ExpertKey key, std::int32_t slot) {
    return std::any_of(device.returns.begin(), device.returns.end(), [&](const Return& back) {
        return back.under_way && back.key.layer == key.layer && back.slot == slot;
    });
}

bool is_elsewhere(const CacheState& state, ExpertKey key) {
    return state.residency.find(key).has_value() || state.host->find(key) != nullptr;
}

RetiredSlot* retired_slot(DeviceCache& device, const Return& back) {
    const auto found = std::find_if(device.retired.begin(), device.retired.end(), [&](const auto& slot) {
        return slot.layer == back.key.layer && slot.slot == back.slot;
    });
    return found == device.retired.end() ? nullptr : &*found;
}

/// False where the device refuses the copy, of which nothing runs then.
bool queue_copy(CacheState& state, DeviceCache& device, const Return& back) {
    try {
        device.stream->copy_to_host(state.host->bytes_of(back.key.layer, back.place),
                                    device.slots.address(back.key.layer, back.slot));
        return true;
    } catch (const Error&) {  // refused: the file still has the expert
        return false;
    }
}

void forget(CacheState& state, DeviceCache& device, const Return& back) {
    state.host->abandon(back.key.layer, back.place);
    device.counts.forgotten += is_elsewhere(state, back.key) ? 0 : 1;
}

/// Whether a copy is under way now.
bool start_return(CacheState& state, DeviceCache& device, Return& back, ExpertKey key, std::int32_t slot) {
    const auto place = state.host->claim(key);
    if (!place) {
        ++device.counts.forgotten;
        return false;
    }
    back.key = key;
    back.slot = slot;
    back.place = *place;
    back.started = state.clock.now();
    if (!queue_copy(state, device, back)) {
        forget(state, device, back);
        count_failure(state, device);
        return false;
    }
    back.under_way = true;
    ++device.returns_under_way;
    try {
        device.stream->record(*back.done);
    } catch (const Error&) {  // nobody knows when the copy ends
        drop(state, device, "it does not answer", Absence::ForNow);
    }
    return true;
}

}  // namespace

bool came_home(CacheState& state, DeviceCache& device, RetiredSlot& slot) {
    if (!state.host || slot.returned) return true;
    const ExpertKey key{slot.layer, device.slots.expert(slot.layer, slot.slot)};
    if (on_its_way(device, key, slot.slot)) return false;
    Return* back = free_return(device);
    if (!back) return false;
    if (!is_elsewhere(state, key) && start_return(state, device, *back, key, slot.slot)) return false;
    return slot.returned = !device.out.load();
}

void settle_returns(CacheState& state, DeviceCache& device) {
    if (device.returns_under_way == 0) return;
    for (Return& back : device.returns) {
        if (!back.under_way || device.out.load()) continue;
        const EventState done = back.done->state();
        if (done == EventState::Pending) {
            if (state.clock.now() - back.started > state.options.uploads.watchdog) {
                drop(state, device, "a copy does not end", Absence::ForGood);
            }
            continue;
        }
        back.under_way = false;
        --device.returns_under_way;
        if (RetiredSlot* slot = retired_slot(device, back)) slot->returned = true;
        if (done == EventState::Failed || is_elsewhere(state, back.key)) {
            forget(state, device, back);
            continue;
        }
        state.host->publish(back.key.layer, back.place);
        ++device.counts.returned;
    }
}

void abandon_returns(CacheState& state, DeviceCache& device) {
    for (Return& back : device.returns) {
        if (back.under_way) state.host->abandon(back.key.layer, back.place);
        back.under_way = false;
    }
    device.returns_under_way = 0;
}

}  // namespace coterie::expert_cache
