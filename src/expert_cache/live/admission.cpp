#include "expert_cache/live/admission.h"

#include <algorithm>

#include "base/error.h"
#include "expert_cache/live/eviction.h"

namespace coterie::expert_cache {
namespace {

// Of a token's misses so many are looked at, others at other tokens: more than a queue takes, and what is
// worth a slot is missed again soon.
constexpr std::int32_t kConsidered = 96;
constexpr int kMarks = 16;

std::uint64_t bytes_of(const CacheState& state, ExpertKey key) {
    return state.layers[static_cast<std::size_t>(key.layer)].expert_bytes;
}

/// The device with the most room for a layer, or null.
DeviceCache* roomiest(CacheState& state, std::int32_t layer) {
    DeviceCache* best = nullptr;
    std::int32_t most = 0;
    for (const auto& device : state.devices) {
        if (!state.has_room(*device, layer) || device->uploader.room() == 0) continue;
        const std::int32_t room = device->fill_limit[static_cast<std::size_t>(layer)] -
                                  device->slots.count(layer, SlotState::Resident) -
                                  device->slots.count(layer, SlotState::Filling);
        if (room <= most) continue;
        most = room;
        best = device.get();
    }
    return best;
}

bool is_here_or_coming(CacheState& state, ExpertKey key) {
    return state.record(key).arriving || state.residency.find(key).has_value();
}

/// Claims a slot and queues the copy. `victim`: an expert of the same device, or -1.
bool start_upload(CacheState& state, DeviceCache& device, ExpertKey key, std::int32_t victim) {
    if (device.uploader.room() == 0) return false;
    const auto slot = device.slots.claim(key.layer, key.expert);
    if (!slot) return false;
    const Upload upload{
        .key = key, .slot = *slot, .to = device.slots.address(key.layer, *slot), .from = state.bytes_of(key)};
    if (!device.uploader.submit(upload)) {
        device.slots.abandon(key.layer, *slot);
        return false;
    }
    ExpertRecord& record = state.record(key);
    record.arriving = true;
    record.victim = victim;
    if (victim >= 0) state.doom({key.layer, victim}, true);
    return true;
}

/// An expert that the policy admits takes a free slot, or a victim's. False where it has to go on missing:
/// all others are worth more.
bool admit(CacheState& state, ExpertKey key) {
    if (DeviceCache* roomy = roomiest(state, key.layer)) return start_upload(state, *roomy, key, -1);
    const auto victim = choose_victim(state, key);
    if (!victim) return false;
    DeviceCache& device = state.at(victim->device);
    const std::int32_t expert = device.slots.expert(key.layer, victim->slot);
    if (start_upload(state, device, key, expert)) return true;
    // No slot is spare: the victim goes first, and the next use of `key` finds its slot free.
    evict(state, device, key.layer, victim->slot);
    return true;
}

void feed_policies(CacheState& state, const StepLog& log) {
    for (const Use& use : log.uses) {
        state.last_token = std::max(state.last_token, state.tokens + use.token);
        state.policy(use.key.layer).used(use.key.expert, state.last_token, use.hit);
    }
}

bool uploads_wanted(const CacheState& state) {
    return std::any_of(state.devices.begin(), state.devices.end(),
                       [](const auto& device) { return !device->out.load() && device->uploader.room() > 0; });
}

/// Each missed expert once, from another layer on each time, so that none is served last for ever.
void admit_missed(CacheState& state, const StepLog& log) {
    const std::uint64_t round = ++state.rounds;
    const std::size_t count = log.uses.size();
    const std::size_t start = count == 0 ? 0 : round * 37 % count;
    // While no queue takes one more, a few are still told that they are wanted.
    int marks = kMarks;
    bool room = uploads_wanted(state);
    std::int32_t left = kConsidered * std::max(log.tokens, 1);
    for (std::size_t i = start, end = start + count; i < end && left > 0 && (marks > 0 || room); ++i) {
        const Use& use = log.uses[i < count ? i : i - count];
        if (use.hit) continue;
        --left;
        ExpertRecord& record = state.record(use.key);
        if (record.considered == round || is_here_or_coming(state, use.key)) continue;
        record.considered = round;
        bool wanted = state.policy(use.key.layer).admits(use.key.expert, state.last_token);
        if (!room) {
            --marks;
        } else if (wanted) {
            wanted = admit(state, use.key);
            room = !wanted || uploads_wanted(state);
        }
        state.residency.at(use.key).mark_wanted(wanted);
    }
}

/// Flips the table to a slot that has been filled.
void publish(CacheState& state, DeviceCache& device, ExpertKey key, std::int32_t slot) {
    device.slots.publish(key.layer, slot);
    state.residency.at(key).mark_fresh();
    state.residency.at(key).mark_wanted(false);
    state.residency.publish(key, device.device_number, slot);
    if (state.host) state.host->leave(key, state.epochs);
    state.policy(key.layer).inserted(key.expert, state.last_token);
    device.counts.uploaded_bytes += bytes_of(state, key);
    device.failures_in_a_row = 0;
    device.retry.succeeded();
}

/// The expert that an upload was to replace, if it is still where it was.
void replace_victim(CacheState& state, DeviceCache& device, ExpertKey victim) {
    state.doom(victim, false);
    const auto place = state.residency.find(victim);
    if (!place || place->device != device.device_number) return;
    if (may_leave(state, device, victim, place->slot)) evict(state, device, victim.layer, place->slot);
}

void give_up_arrival(CacheState& state, DeviceCache& device, ExpertKey key, std::int32_t slot) {
    device.slots.abandon(key.layer, slot);
    const std::int32_t victim = state.record(key).victim;
    if (victim >= 0) state.doom({key.layer, victim}, false);
    state.record(key).arriving = false;
}

void settle_fetch(CacheState& state, DeviceCache& device, Fetch& fetch) {
    const EventState done = fetch.done->state();
    if (done == EventState::Pending) {
        if (state.clock.now() - fetch.started > state.options.uploads.watchdog) {
            drop(state, device, "a copy does not end", Absence::ForGood);
        }
        return;
    }
    fetch.under_way = false;
    --device.fetches_under_way;
    if (done == EventState::Reached && !fetch.refused) {
        publish(state, device, fetch.key, fetch.slot);
        state.record(fetch.key).arriving = false;
        ++device.counts.fetches;
        device.counts.fetched_bytes += bytes_of(state, fetch.key);
        trim(state, device, fetch.key.layer, fetch.slot);
        return;
    }
    give_up_arrival(state, device, fetch.key, fetch.slot);
    count_failure(state, device);
}

/// Queues the copies of a fetch. Whether all of them were taken.
bool queue_copies(const HostExpert& from, DeviceAddress to, const DeviceCache& device, Stream& stream) {
    try {
        stream.wait_for(*device.maintained);
        for (const auto& piece : from.pieces) {
            if (!piece.empty()) stream.copy_to_device(to, piece);
            to = to + piece.size();
        }
        return true;
    } catch (const Error&) {  // refused: the expert stays with the CPU
        return false;
    }
}

/// A slot that the running step's stream may still write: free when that step has ended.
void give_up_unmarked(CacheState& state, DeviceCache& device, Fetch& fetch) {
    fetch.under_way = false;
    --device.fetches_under_way;
    state.record(fetch.key).arriving = false;
    device.slots.publish(fetch.key.layer, fetch.slot);
    device.slots.retire(fetch.key.layer, fetch.slot, state.epochs.retire());
    device.retired.push_back(
        {.layer = fetch.key.layer, .slot = fetch.slot, .returned = true});  // half-written
    count_failure(state, device);
}

Fetch* free_fetch(DeviceCache& device) {
    const auto found = std::find_if(device.fetches.begin(), device.fetches.end(),
                                    [](const Fetch& fetch) { return !fetch.under_way; });
    return found == device.fetches.end() ? nullptr : &*found;
}

}  // namespace

void learn(CacheState& state, StepLog& log) {
    if (log.learns) {
        feed_policies(state, log);
        admit_missed(state, log);
    }
    log.uses.clear();
}

bool upload_into_room(CacheState& state, ExpertKey key) {
    if (is_here_or_coming(state, key)) return false;
    DeviceCache* device = roomiest(state, key.layer);
    return device && start_upload(state, *device, key, -1);
}

bool upload_ahead(CacheState& state, ExpertKey key) {
    if (is_here_or_coming(state, key)) return false;
    if (upload_into_room(state, key)) return true;
    const auto victim = choose_victim(state, key);
    if (!victim) return false;
    DeviceCache& device = state.at(victim->device);
    return start_upload(state, device, key, device.slots.expert(key.layer, victim->slot));
}

void settle_upload(CacheState& state, DeviceCache& device, const UploadResult& result) {
    if (device.out.load()) return;  // its slots are given up already
    if (result.outcome != UploadOutcome::Done) {
        give_up_arrival(state, device, result.key, result.slot);
        if (result.outcome == UploadOutcome::Cancelled) return;
        count_failure(state, device);
        return;
    }
    const std::int32_t victim = std::exchange(state.record(result.key).victim, -1);
    state.record(result.key).arriving = false;
    publish(state, device, result.key, result.slot);
    ++device.counts.uploads;
    if (victim >= 0) replace_victim(state, device, {result.key.layer, victim});
    trim(state, device, result.key.layer, result.slot);
}

void settle_fetches(CacheState& state, DeviceCache& device) {
    if (device.fetches_under_way == 0) return;
    for (Fetch& fetch : device.fetches) {
        if (device.out.load()) return;
        if (fetch.under_way) settle_fetch(state, device, fetch);
    }
}

std::optional<DeviceAddress> start_fetch(CacheState& state, ExpertKey key, std::int32_t number,
                                         Stream& stream) {
    DeviceCache& device = state.at(number);
    Fetch* fetch = free_fetch(device);
    if (device.out.load() || !fetch || is_here_or_coming(state, key)) return std::nullopt;
    const auto slot = device.slots.claim(key.layer, key.expert);
    if (!slot) return std::nullopt;
    const DeviceAddress to = device.slots.address(key.layer, *slot);
    const bool queued = queue_copies(state.bytes_of(key), to, device, stream);
    state.record(key) = {.arriving = true, .considered = state.record(key).considered};
    fetch->key = key;
    fetch->slot = *slot;
    fetch->started = state.clock.now();
    fetch->refused = !queued;
    fetch->under_way = true;
    ++device.fetches_under_way;
    try {
        stream.record(*fetch->done);
    } catch (const Error&) {  // only the step's end says any more when the slot is written
        give_up_unmarked(state, device, *fetch);
        return std::nullopt;
    }
    check_lost(state, device);
    return queued ? std::optional(to) : std::nullopt;
}

}  // namespace coterie::expert_cache
