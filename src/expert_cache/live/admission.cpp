#include "expert_cache/live/admission.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "expert_cache/live/eviction.h"

namespace coterie::expert_cache {
namespace {

// Of a token's misses so many are looked at, others at other tokens: more than a queue takes, and what is
// worth a slot is missed again soon.
constexpr std::int32_t kConsidered = 96;
constexpr int kMarks = 16;

/// The numbers below `count`, evenly, whatever it is: multiples of the golden ratio.
std::size_t spread(std::uint64_t round, std::size_t count) {
    const std::uint64_t fraction = round * 0x9E3779B97F4A7C15ull >> 32;  // of 2^32
    return static_cast<std::size_t>(fraction * count >> 32);
}

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
    return state.arriving.has(key) || state.residency.find(key).has_value();
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
    state.arriving.set(key, true);
    state.victim_of(key) = victim;
    if (victim >= 0) state.doomed.set({key.layer, victim}, true);
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
    for (const StepLog::Run& run : log.runs()) {
        state.last_token = std::max(state.last_token, state.tokens + run.token);
        state.policy(run.layer).token_used(log.uses(run), state.last_token);
    }
}

bool uploads_wanted(const CacheState& state) {
    return std::any_of(state.devices.begin(), state.devices.end(),
                       [](const auto& device) { return !device->out.load() && device->uploader.room() > 0; });
}

/// Decides which of the experts that a step missed come in.
class Admission {
  public:
    Admission(CacheState& state, const StepLog& log)
        : state_(state),
          left_(kConsidered * std::max(log.tokens, 1)),
          room_(uploads_wanted(state)),
          repeats_(log.tokens > 1) {
        if (repeats_) std::fill(state.considered.all().begin(), state.considered.all().end(), 0);
    }

    /// While no queue takes one more, a few are still told that they are wanted.
    bool goes_on() const { return left_ > 0 && (marks_ > 0 || room_); }

    void consider(const StepLog::Run& run, std::span<const ExpertUse> uses) {
        for (std::uint64_t missed = run.missed; missed != 0 && goes_on(); missed &= missed - 1) {
            --left_;
            const ExpertKey key{run.layer, uses[static_cast<std::size_t>(std::countr_zero(missed))].expert};
            if (!was_considered(key) && !is_here_or_coming(state_, key)) decide(key);
        }
    }

  private:
    bool was_considered(ExpertKey key) {
        if (!repeats_) return false;
        const bool was = state_.considered.has(key);
        state_.considered.set(key, true);
        return was;
    }
    void decide(ExpertKey key) {
        bool wanted = state_.policy(key.layer).admits(key.expert, state_.last_token);
        if (!room_) {
            --marks_;
        } else if (wanted) {
            wanted = admit(state_, key);
            room_ = !wanted || uploads_wanted(state_);
        }
        state_.residency.mark_wanted(key, wanted);
    }

    CacheState& state_;
    std::int32_t left_;
    int marks_ = kMarks;
    bool room_;
    bool repeats_;  ///< tokens of one step may have missed the same expert
};

/// Each missed expert once, from another layer on each time, so that none is served last for ever.
void admit_missed(CacheState& state, const StepLog& log) {
    const auto runs = log.runs();
    Admission admission(state, log);
    std::size_t next = spread(++state.rounds, runs.size());
    for (std::size_t i = 0; i < runs.size() && admission.goes_on(); ++i) {
        admission.consider(runs[next], log.uses(runs[next]));
        if (++next == runs.size()) next = 0;
    }
}

/// Flips the table to a slot that has been filled.
void publish(CacheState& state, DeviceCache& device, ExpertKey key, std::int32_t slot) {
    device.slots.publish(key.layer, slot);
    state.residency.mark_wanted(key, false);
    state.residency.publish(key, device.device_number, slot, Fresh::Yes);
    device.residents.set(key, true);
    state.arriving.set(key, false);
    if (state.host) state.host->leave(key, state.epochs);
    state.policy(key.layer).inserted(key.expert, state.last_token);
    device.counts.uploaded_bytes += bytes_of(state, key);
    device.failures_in_a_row = 0;
    device.retry.succeeded();
}

/// The expert that an upload was to replace, if it is still where it was.
void replace_victim(CacheState& state, DeviceCache& device, ExpertKey victim) {
    state.doomed.set(victim, false);
    const auto place = state.residency.find(victim);
    if (!place || place->device != device.device_number) return;
    if (may_leave(state, device, victim, place->slot)) evict(state, device, victim.layer, place->slot);
}

void give_up_arrival(CacheState& state, DeviceCache& device, ExpertKey key, std::int32_t slot) {
    device.slots.abandon(key.layer, slot);
    const std::int32_t victim = state.victim_of(key);
    if (victim >= 0) state.doomed.set({key.layer, victim}, false);
    state.arriving.set(key, false);
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
    state.arriving.set(fetch.key, false);
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
    log.forget_uses();
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
    const std::int32_t victim = std::exchange(state.victim_of(result.key), -1);
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
    state.arriving.set(key, true);
    state.victim_of(key) = -1;
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
