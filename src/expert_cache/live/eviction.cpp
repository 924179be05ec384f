#include "expert_cache/live/eviction.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "expert_cache/live/homecoming.h"

namespace coterie::expert_cache {
namespace {

constexpr std::byte kPoison{0xA5};
// A device that keeps failing only slows everything down.
constexpr std::int32_t kFailuresInARow = 16;

/// A copy into the device can be made before the victim goes; where residents have all slots, the victim goes
/// first.
bool could_take_one(const DeviceCache& device, std::int32_t layer) {
    if (device.out.load() || device.uploader.room() == 0) return false;
    return device.slots.count(layer, SlotState::Free) > 0 ||
           device.slots.count(layer, SlotState::Resident) == device.slots.slots(layer);
}

/// False where the device refuses it.
bool poison(DeviceCache& device, RetiredSlot slot) {
    try {
        device.stream->fill(device.slots.address(slot.layer, slot.slot), device.slots.slot_bytes(slot.layer),
                            kPoison);
        return true;
    } catch (const Error&) {  // an expected outcome
        return false;
    }
}

/// `maintained` becomes the end of what the device's own stream does; false where the device refuses it.
bool record_maintained(DeviceCache& device) {
    try {
        device.stream->record(*device.maintained);
        return true;
    } catch (const Error&) {  // an expected outcome
        return false;
    }
}

/// Makes the device's own stream usable again. It has nothing under way.
void clear_failure(DeviceCache& device) {
    try {
        device.stream->synchronise();
    } catch (const Error&) {  // what its event has already said
    }
}

bool something_writes(DeviceCache& device) {
    if (!device.uploader.idle() || device.maintained->state() == EventState::Pending) return true;
    for (const Fetch& fetch : device.fetches) {
        if (fetch.under_way && fetch.done->state() == EventState::Pending) return true;
    }
    return std::any_of(device.returns.begin(), device.returns.end(), [](const Return& back) {
        return back.under_way && back.done->state() == EventState::Pending;
    });
}

/// Takes the experts out that running steps read.
void leave_out_reads(CacheState& state, std::int32_t layer, std::span<std::uint64_t> words) {
    for (std::int32_t place = 0; place < StepEpochs::kSteps; ++place) {
        if (!state.epochs.runs(place)) continue;
        const auto reads = state.logs[static_cast<std::size_t>(place)].reads.layer(layer);
        for (std::size_t w = 0; w < words.size(); ++w) words[w] &= ~reads[w].load(std::memory_order_relaxed);
    }
}

void leave_out_pinned(const DeviceCache& device, std::int32_t layer, std::span<std::uint64_t> words) {
    if (!device.slots.any_pinned(layer)) return;
    for (std::int32_t slot = 0; slot < device.slots.slots(layer); ++slot) {
        if (!device.slots.pinned(layer, slot) || device.slots.state(layer, slot) != SlotState::Resident)
            continue;
        const std::int32_t expert = device.slots.expert(layer, slot);
        words[LayerBits::word(expert)] &= ~LayerBits::bit(expert);
    }
}

/// A layer's residents of the devices that `is_asked` names, but for those that may not leave now; in
/// ascending order, until the next call.
template <typename IsAsked>
std::span<const std::int32_t> find_candidates(CacheState& state, std::int32_t layer, IsAsked is_asked) {
    const auto doomed = state.doomed.layer(layer);
    state.may_go.assign(doomed.size(), 0);
    for (const auto& device : state.devices) {
        if (!is_asked(*device)) continue;
        const auto residents = device->residents.layer(layer);
        for (std::size_t w = 0; w < residents.size(); ++w) state.may_go[w] |= residents[w] & ~doomed[w];
        leave_out_pinned(*device, layer, state.may_go);
    }
    leave_out_reads(state, layer, state.may_go);
    std::size_t count = 0;
    for_each_bit(state.may_go, [&](std::int32_t expert) { state.candidates[count++] = expert; });
    return std::span(state.candidates).first(count);
}

}  // namespace

bool may_leave(CacheState& state, const DeviceCache& device, ExpertKey key, std::int32_t slot) {
    if (state.doomed.has(key) || device.slots.pinned(key.layer, slot)) return false;
    for (std::int32_t place = 0; place < StepEpochs::kSteps; ++place) {
        if (state.epochs.runs(place) && state.logs[static_cast<std::size_t>(place)].is_read(key))
            return false;
    }
    return true;
}

void evict(CacheState& state, DeviceCache& device, std::int32_t layer, std::int32_t slot) {
    const ExpertKey key{layer, device.slots.expert(layer, slot)};
    state.residency.withdraw(key);
    device.slots.retire(layer, slot, state.epochs.retire());
    device.retired.push_back({.layer = layer, .slot = slot});
    state.doomed.set(key, false);
    device.residents.set(key, false);
    state.policy(layer).removed(key.expert, state.last_token);
    ++device.counts.evictions;
}

std::optional<Victim> choose_victim(CacheState& state, ExpertKey incoming) {
    if (state.policy(incoming.layer).keeps_all(incoming.expert, state.last_token)) return std::nullopt;
    const auto candidates = find_candidates(state, incoming.layer, [&](const DeviceCache& device) {
        return could_take_one(device, incoming.layer);
    });
    if (candidates.empty()) return std::nullopt;
    const std::int32_t expert =
        state.policy(incoming.layer).victim(candidates, incoming.expert, state.last_token);
    if (expert < 0) return std::nullopt;
    const auto place = state.residency.find({incoming.layer, expert});
    COTERIE_CHECK(place.has_value());
    return Victim{.device = place->device, .slot = place->slot};
}

std::int32_t coldest_slot(CacheState& state, const DeviceCache& device, std::int32_t layer,
                          std::int32_t keep) {
    const auto candidates =
        find_candidates(state, layer, [&](const DeviceCache& other) { return &other == &device; });
    std::int32_t coldest = -1;
    double least = std::numeric_limits<double>::infinity();
    for (const std::int32_t expert : candidates) {
        const double worth = state.policy(layer).worth(expert, state.last_token);
        if (coldest >= 0 && worth >= least) continue;
        const std::int32_t slot = state.residency.find({layer, expert})->slot;
        if (slot == keep) continue;
        least = worth;
        coldest = slot;
    }
    return coldest;
}

void trim(CacheState& state, DeviceCache& device, std::int32_t layer, std::int32_t keep) {
    while (device.slots.count(layer, SlotState::Resident) >
           device.fill_limit[static_cast<std::size_t>(layer)]) {
        const std::int32_t slot = coldest_slot(state, device, layer, keep);
        if (slot < 0) {
            device.overfull = true;
            return;
        }
        evict(state, device, layer, slot);
    }
}

void trim_all(CacheState& state, DeviceCache& device) {
    if (!std::exchange(device.overfull, false)) return;
    for (std::int32_t layer = 0; layer < state.layer_count() && !device.out.load(); ++layer) {
        trim(state, device, layer, -1);
    }
}

void reclaim(CacheState& state, DeviceCache& device) {
    revive(state, device);
    if (state.host) settle_returns(state, device);
    if (device.out.load() || device.retired.empty()) return;
    const std::uint64_t oldest = state.epochs.oldest();
    if (state.host) state.host->reclaim(oldest);
    bool poisoned = false;
    bool refused = false;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < device.retired.size(); ++i) {  // more may come while it runs
        RetiredSlot slot = device.retired[i];
        bool free = !refused && !device.out.load() &&
                    device.slots.reclaimable(slot.layer, slot.slot, oldest) && came_home(state, device, slot);
        if (free && state.options.poison_freed) {
            refused = !poison(device, slot);
            poisoned |= !refused;
            free = !refused;  // tried again next time
        }
        if (free) device.slots.reclaim(slot.layer, slot.slot);
        if (!free) device.retired[kept++] = slot;
    }
    device.retired.resize(kept);
    if (refused) count_failure(state, device);
    if (poisoned && !record_maintained(device)) {
        drop(state, device, "it does not answer",
             Absence::ForNow);  // nobody knows when the poison is written
    }
}

void revive(CacheState& state, DeviceCache& device) {
    if (device.out.load() || device.maintained->state() != EventState::Failed) return;
    clear_failure(device);
    const bool answers = record_maintained(device);
    count_failure(state, device);
    if (!answers) drop(state, device, "it does not answer", Absence::ForNow);
}

void count_failure(CacheState& state, DeviceCache& device) {
    ++device.counts.failures;
    ++device.failures_in_a_row;
    check_lost(state, device);
}

void check_lost(CacheState& state, DeviceCache& device) {
    if (device.lost.load()) return;
    if (device.device.lost()) {
        drop(state, device, "it is lost", Absence::ForGood);
    } else if (device.failures_in_a_row >= kFailuresInARow) {
        drop(state, device, "its copies keep failing", Absence::ForNow);
    }
}

void drop(CacheState& state, DeviceCache& device, const char* reason, Absence absence) {
    if (absence == Absence::ForGood && !device.lost.exchange(true)) device.slots.abandon_device();
    if (device.out.exchange(true)) return;
    device.retry.failed(state.clock.now().count());
    device.failures_in_a_row = 0;
    log::warn("{} leaves the expert cache{}: {}; its experts are computed from RAM",
              device.device.info().name, device.lost.load() ? "" : " for now", reason);
    device.uploader.cancel_all();
    for (std::int32_t layer = 0; layer < device.slots.layers(); ++layer) {
        for (std::int32_t slot = 0; slot < device.slots.slots(layer); ++slot) {
            const SlotState holds = device.slots.state(layer, slot);
            if (holds == SlotState::Resident) evict(state, device, layer, slot);
            if (holds != SlotState::Filling) continue;
            const ExpertKey key{layer, device.slots.expert(layer, slot)};
            const std::int32_t victim = std::exchange(state.victim_of(key), -1);
            if (victim >= 0) state.doomed.set({layer, victim}, false);
            state.arriving.set(key, false);
        }
    }
    if (!device.lost.load())
        record_maintained(device);  // reached when its own stream has nothing left to write
    state.set_fill_limits();
}

void take_back(CacheState& state, DeviceCache& device) {
    if (device.device.lost()) return drop(state, device, "it is lost", Absence::ForGood);
    if (device.lost.load() || device.shrinking || !device.retry.may_try(state.clock.now().count())) return;
    if (something_writes(device)) return;
    clear_failure(device);
    if (!record_maintained(device)) return device.retry.failed(state.clock.now().count());
    for (std::int32_t layer = 0; layer < device.slots.layers(); ++layer) {
        for (std::int32_t slot = 0; slot < device.slots.slots(layer); ++slot) {
            if (device.slots.state(layer, slot) == SlotState::Filling) device.slots.abandon(layer, slot);
        }
    }
    for (Fetch& fetch : device.fetches) fetch.under_way = false;
    device.fetches_under_way = 0;
    abandon_returns(state, device);
    device.out.store(false);
    state.set_fill_limits();
    log::info("{} is back in the expert cache", device.device.info().name);
}

}  // namespace coterie::expert_cache
