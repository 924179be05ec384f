#include "expert_cache/planner/step_search.h"

namespace coterie::expert_cache {
namespace {

/// Rounds of single moves and exchanges: a bound on the time, rarely met.
constexpr int kRounds = 8;
/// Exchanging pairs is quadratic; among many experts single moves come near enough.
constexpr std::size_t kExchangeLimit = 64;

/// Leaves the state as it was where the move brings nothing.
bool try_move(StepState& state, std::size_t i, Assignment to) {
    const Assignment from = state.work(i);
    if (from == to) return false;
    const StepScore before = state.score();
    state.move(i, to);
    if (state.score().better_than(before)) return true;
    state.move(i, from);
    return false;
}

bool try_moves(StepState& state, std::size_t i, Assignment to_i, std::size_t j, Assignment to_j) {
    const Assignment from_i = state.work(i);
    const Assignment from_j = state.work(j);
    const StepScore before = state.score();
    state.move(i, to_i);
    state.move(j, to_j);
    if (state.score().better_than(before)) return true;
    state.move(i, from_i);
    state.move(j, from_j);
    return false;
}

/// A move to the CPU gains nothing that the CPU then ends after; most need no closer look.
bool try_cpu(StepState& state, std::size_t i) {
    const double cpu_seconds = state.model().cpu_finish() + state.model().cpu_expert_seconds(state.used(i));
    return cpu_seconds < state.score().finish && try_move(state, i, {});
}

bool improve_one(StepState& state, std::size_t i) {
    bool improved = state.work(i).work != Work::Cpu && try_cpu(state, i);
    if (state.resident(i)) return try_move(state, i, state.in_place(i)) || improved;
    for (std::int32_t device = 0; device < state.device_count(); ++device) {
        if (state.has_room(device)) improved |= try_move(state, i, {Work::Fetch, device});
    }
    return improved;
}

/// One expert takes the other's place on the CPU, which goes to any device it may.
bool exchange_with_cpu(StepState& state, std::size_t on_cpu, std::size_t on_device) {
    if (state.resident(on_cpu)) return try_moves(state, on_cpu, state.in_place(on_cpu), on_device, {});
    for (std::int32_t device = 0; device < state.device_count(); ++device) {
        const bool leaves_room = state.work(on_device) == Assignment{Work::Fetch, device};
        if (!leaves_room && !state.has_room(device)) continue;
        if (try_moves(state, on_cpu, {Work::Fetch, device}, on_device, {})) return true;
    }
    return false;
}

/// Whether j in place of i is less work for a side, or a fetch of more worth: without either, an exchange is
/// none.
bool relieves(const UsedExpert& i, const UsedExpert& j) {
    return j.tokens < i.tokens || i.fetch_gain_seconds != j.fetch_gain_seconds;
}

/// Of i, which is on the side that ends last, with j.
bool exchange(StepState& state, std::size_t i, std::size_t j) {
    const Assignment at_i = state.work(i);
    const Assignment at_j = state.work(j);
    if (at_i == at_j) return false;
    if (at_j.work == Work::Cpu) return exchange_with_cpu(state, j, i);
    if (!relieves(state.used(i), state.used(j))) return false;
    if (at_i.work == Work::Cpu) return exchange_with_cpu(state, i, j);
    return at_i.work == Work::Fetch && at_j.work == Work::Fetch && try_moves(state, i, at_j, j, at_i);
}

/// Of a device, or of the CPU for kNoDevice.
double side_finish(const StepState& state, std::int32_t side) {
    return side == kNoDevice ? state.model().cpu_finish() : state.model().device_finish(side);
}

std::int32_t last_side(const StepState& state) {
    std::int32_t last = kNoDevice;
    for (std::int32_t device = 0; device < state.device_count(); ++device) {
        if (side_finish(state, device) > side_finish(state, last)) last = device;
    }
    return last;
}

bool on_side(const StepState& state, std::size_t i, std::int32_t side) {
    return side == kNoDevice ? state.work(i).work == Work::Cpu : state.work(i).device == side;
}

/// Only what relieves the side that ends last brings the end nearer.
bool exchange_from_last_side(StepState& state) {
    const std::int32_t last = last_side(state);
    if (state.model().ram_finish() >= side_finish(state, last)) return false;
    bool improved = false;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (!on_side(state, i, last)) continue;
        for (std::size_t j = 0; j < state.size() && on_side(state, i, last); ++j) {
            improved |= exchange(state, i, j);
        }
    }
    return improved;
}

bool improve_once(StepState& state) {
    bool improved = false;
    for (std::size_t i = 0; i < state.size(); ++i) improved |= improve_one(state, i);
    if (state.size() <= kExchangeLimit) improved |= exchange_from_last_side(state);
    return improved;
}

void descend(StepState& state) {
    for (int round = 0; round < kRounds && improve_once(state); ++round) {
    }
}

/// Whether all links together need more time for so many copies than the step takes now.
bool copies_take_too_long(const StepState& state, std::int32_t copies) {
    double copies_per_second = 0;
    for (const DeviceState& device : state.devices()) copies_per_second += 1 / device.copy_seconds;
    return copies >= state.score().finish * copies_per_second;
}

/// False, with nothing moved, where a look at the sums says that it cannot help.
bool empty_cpu(StepState& state) {
    if (state.model().cpu_experts() == 0) return false;
    if (copies_take_too_long(state, state.model().fetched() + state.model().cpu_experts())) return false;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (state.work(i).work != Work::Cpu) continue;
        if (state.resident(i)) {
            state.move(i, state.in_place(i));
        } else {
            fetch_to_best_device(state, i);
        }
    }
    return true;
}

/// The same. A device's residents can go nowhere but to the CPU.
bool empty_device(StepState& state, std::int32_t device) {
    double seconds = 0;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (state.work(i) != Assignment{Work::Resident, device}) continue;
        seconds += state.model().cpu_expert_seconds(state.used(i));
    }
    if (seconds >= state.score().finish) return false;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (state.work(i).device == device) state.move(i, {});
    }
    return true;
}

bool empty(StepState& state, std::int32_t side) {
    return side == kNoDevice ? empty_cpu(state) : empty_device(state, side);
}

void keep_if_better(StepState& state, StepScore& best) {
    descend(state);
    if (!state.score().better_than(best)) return;
    best = state.score();
    state.save();
}

/// One side after another, as it may take several before anything is gained.
void try_sides_empty(StepState& state, StepScore& best) {
    for (std::int32_t tries = 0; tries <= state.device_count() && empty(state, last_side(state)); ++tries) {
        keep_if_better(state, best);
    }
}

void try_all_on_cpu(StepState& state, StepScore& best) {
    double seconds = 0;
    for (std::size_t i = 0; i < state.size(); ++i) seconds += state.model().cpu_expert_seconds(state.used(i));
    if (seconds > best.cost) return;
    for (std::size_t i = 0; i < state.size(); ++i) state.move(i, {});
    keep_if_better(state, best);
}

/// The plan that a planner without a model would make: residents in place, misses to the devices in turn as
/// far as slots go. Where experts differ much, luck can make it better than a search.
void try_all_fetched(StepState& state, StepScore& best) {
    std::int32_t turn = 0;
    for (std::size_t i = 0; i < state.size(); ++i) state.move(i, state.in_place(i));
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (state.resident(i)) continue;
        for (std::int32_t tries = 0; tries < state.device_count(); ++tries) {
            const std::int32_t device = turn++ % state.device_count();
            if (!state.has_room(device)) continue;
            state.move(i, {Work::Fetch, device});
            break;
        }
    }
    if (state.score().better_than(best)) keep_if_better(state, best);
}

}  // namespace

void improve(StepState& state) {
    descend(state);
    state.save();
    StepScore best = state.score();
    try_sides_empty(state, best);
    try_all_on_cpu(state, best);
    try_all_fetched(state, best);
    state.restore();
}

}  // namespace coterie::expert_cache
