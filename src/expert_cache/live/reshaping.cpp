#include "expert_cache/live/reshaping.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "expert_cache/live/eviction.h"
#include "expert_cache/live/maintenance.h"
#include "expert_cache/slots/shares.h"

namespace coterie::expert_cache {
namespace {

/// A hot expert on its way from a slot that is to go to one that stays.
struct Move {
    ExpertKey key;
    Residence from;
    std::int32_t to;
};

/// One device on its way to smaller layers.
class Shrinking {
  public:
    Shrinking(CacheState& state, DeviceCache& device, std::span<const std::int32_t> targets)
        : state_(state), device_(device), targets_(targets) {}

    bool run() {
        const Nanoseconds start = state_.clock.now();
        const Nanoseconds deadline = saturating_add(start, state_.options.patience);
        begin();
        while (!advance() && state_.clock.now() < deadline) {
            wait_a_little(state_);
            maintain_once(state_);
        }
        const std::unique_lock lock = lock_when_nothing_writes();
        device_.counts.waited += state_.clock.now() - start;
        return finish();
    }

  private:
    std::int32_t target(std::int32_t layer) const { return targets_[static_cast<std::size_t>(layer)]; }
    bool shrinks(std::int32_t layer) const { return target(layer) < device_.slots.slots(layer); }

    /// Nothing new enters what is to go.
    void begin() {
        device_.uploader.cancel_all();
        const std::lock_guard lock(state_.mutex);
        device_.shrinking = true;
        for (std::int32_t layer = 0; layer < state_.layer_count(); ++layer) {
            if (shrinks(layer)) device_.slots.limit_claims(layer, target(layer));
        }
    }

    /// As many stay as there are slots for in the end; those in use go when they can.
    void evict_coldest() {
        for (std::int32_t layer = 0; layer < state_.layer_count(); ++layer) {
            if (!shrinks(layer)) continue;
            const std::int32_t keep =
                target(layer) - spare_of(target(layer), state_.options.spare_slots, Complete::No);
            while (device_.slots.count(layer, SlotState::Resident) > keep) {
                const std::int32_t slot = coldest_slot(state_, device_, layer, -1);
                if (slot < 0) break;
                evict(state_, device_, layer, slot);
            }
        }
    }

    /// One round of moves. Whether all that is to go is free.
    bool advance() {
        std::unique_lock lock(state_.mutex);
        if (device_.out.load() || all_free()) return true;
        evict_coldest();
        start_moves();
        if (moves_.empty()) return false;
        lock.unlock();
        const EventState moved = device_.maintained->wait(state_.options.uploads.watchdog);
        lock.lock();
        if (moved == EventState::Pending) drop(state_, device_, "a copy does not end", Absence::ForGood);
        revive(state_, device_);
        for (const Move& move : moves_) end_move(move, moved);
        moves_.clear();
        reclaim(state_, device_);
        return device_.out.load() || all_free();
    }

    /// Free slots may still be written with poison; only then can their memory go.
    std::unique_lock<std::mutex> lock_when_nothing_writes() {
        while (true) {
            const EventState written = device_.maintained->wait(state_.options.uploads.watchdog);
            std::unique_lock lock(state_.mutex);
            if (written == EventState::Pending)
                drop(state_, device_, "a copy does not end", Absence::ForGood);
            if (device_.out.load() || device_.maintained->state() != EventState::Pending) return lock;
        }
    }

    bool all_free() const {
        for (std::int32_t layer = 0; layer < state_.layer_count(); ++layer) {
            if (shrinks(layer) && lowest_possible(layer) > target(layer)) return false;
        }
        return true;
    }

    /// To how many slots the layer could shrink now.
    std::int32_t lowest_possible(std::int32_t layer) const {
        std::int32_t slots = device_.slots.slots(layer);
        while (slots > target(layer) && device_.slots.state(layer, slots - 1) == SlotState::Free) --slots;
        return slots;
    }

    void start_moves() {
        try {
            for (std::int32_t layer = 0; layer < state_.layer_count(); ++layer) {
                if (shrinks(layer)) start_moves_of(layer);
            }
            if (!moves_.empty()) device_.stream->record(*device_.maintained);
        } catch (const Error&) {  // its results can not be known any more
            drop(state_, device_, "it refuses to move experts", Absence::ForNow);
        }
    }

    void start_moves_of(std::int32_t layer) {
        for (std::int32_t slot = target(layer); slot < device_.slots.slots(layer); ++slot) {
            if (device_.slots.state(layer, slot) != SlotState::Resident) continue;
            const ExpertKey key{layer, device_.slots.expert(layer, slot)};
            const auto to = device_.slots.claim(layer, key.expert);
            if (!to) return;
            moves_.push_back({.key = key, .from = *state_.residency.find(key), .to = *to});
            device_.stream->copy_on_device(device_.slots.address(layer, *to),
                                           device_.slots.address(layer, slot),
                                           device_.slots.slot_bytes(layer));
        }
    }

    /// Flips the table to the new place, unless the expert has left meanwhile. One that could not be moved
    /// leaves.
    void end_move(const Move& move, EventState moved) {
        if (device_.out.load()) return;
        const bool still_there = state_.residency.find(move.key) == move.from;
        if (moved != EventState::Reached || !still_there) {
            device_.slots.abandon(move.key.layer, move.to);
            if (still_there) evict(state_, device_, move.key.layer, move.from.slot);
            return;
        }
        device_.slots.publish(move.key.layer, move.to);
        state_.residency.publish(move.key, device_.device_number, move.to,
                                 state_.residency.at(move.key).fresh());
        device_.slots.retire(move.key.layer, move.from.slot, state_.epochs.retire());
        device_.retired.push_back({.layer = move.key.layer, .slot = move.from.slot});
        device_.counts.moved_bytes += device_.slots.slot_bytes(move.key.layer);
    }

    /// Gives back what is free. Whether that is all that was to go.
    bool finish() {
        bool all = !device_.out.load();
        device_.shrinking = false;
        for (std::int32_t layer = 0; layer < state_.layer_count(); ++layer) {
            device_.slots.limit_claims(layer, device_.slots.capacity(layer));
            if (device_.out.load() || !shrinks(layer)) continue;
            device_.slots.shrink(layer, lowest_possible(layer));
            all = all && device_.slots.slots(layer) == target(layer);
        }
        state_.set_fill_limits();
        return all;
    }

    CacheState& state_;
    DeviceCache& device_;
    std::span<const std::int32_t> targets_;
    std::vector<Move> moves_;
};

/// How much of the layer's wanted slots it still has, in the plan.
double fullness(const DeviceCache& device, std::int32_t layer, std::int32_t slots) {
    const std::int32_t wanted = device.wanted[static_cast<std::size_t>(layer)];
    return wanted > 0 ? static_cast<double>(slots) / wanted : slots;
}

}  // namespace

bool shrink_to(CacheState& state, DeviceCache& device, std::span<const std::int32_t> targets) {
    return Shrinking(state, device, targets).run();
}

void grow_to_wanted(CacheState& state, DeviceCache& device) {
    const std::lock_guard lock(state.mutex);
    for (std::int32_t layer = 0; layer < state.layer_count() && !device.out.load(); ++layer) {
        const std::int32_t wanted = device.wanted[static_cast<std::size_t>(layer)];
        std::int32_t slots = device.slots.slots(layer);
        if (slots >= wanted || device.slots.grow(layer, wanted)) continue;
        while (slots < wanted && device.slots.grow(layer, slots + 1)) ++slots;
        check_lost(state, device);
        if (slots == wanted || device.out.load()) continue;
        log::warn("{} refuses memory: layer {} has {} of {} expert slots", device.device.info().name, layer,
                  slots, wanted);
    }
    state.set_fill_limits();
}

std::optional<std::vector<std::int32_t>> targets_without(const DeviceCache& device, std::uint64_t bytes) {
    const SlotTable& table = device.slots;
    std::vector<std::int32_t> targets;
    for (std::int32_t layer = 0; layer < table.layers(); ++layer) targets.push_back(table.slots(layer));
    std::uint64_t freed = 0;
    while (freed < bytes) {
        std::int32_t fullest = -1;
        double most = 0;
        for (std::int32_t layer = 0; layer < table.layers(); ++layer) {
            const double has = fullness(device, layer, targets[static_cast<std::size_t>(layer)]);
            if (has <= most) continue;
            most = has;
            fullest = layer;
        }
        if (fullest < 0) return std::nullopt;
        std::int32_t& target = targets[static_cast<std::size_t>(fullest)];
        freed += table.bytes_for(fullest, target) - table.bytes_for(fullest, target - 1);
        --target;
    }
    return targets;
}

}  // namespace coterie::expert_cache
