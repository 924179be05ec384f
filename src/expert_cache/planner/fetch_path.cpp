#include <algorithm>

#include "expert_cache/planner/step_search.h"

namespace coterie::expert_cache {
namespace {

/// A copy takes the same whatever the tokens, so the experts to fetch first are those whose computing the CPU
/// is relieved of most: with many tokens, unless every device is slower at them.
bool many_tokens_first(const StepState& state) {
    for (const DeviceState& device : state.devices()) {
        if (device.compute->row_seconds <= state.model().cpu_row_seconds()) return true;
    }
    return false;
}

std::span<std::int32_t> sorted_misses(const StepState& state, std::span<std::int32_t> misses) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < state.size(); ++i) {
        if (!state.resident(i)) misses[count++] = static_cast<std::int32_t>(i);
    }
    misses = misses.first(count);
    const std::int32_t sign = many_tokens_first(state) ? 1 : -1;
    std::sort(misses.begin(), misses.end(), [&](std::int32_t left, std::int32_t right) {
        const UsedExpert& a = state.used(static_cast<std::size_t>(left));
        const UsedExpert& b = state.used(static_cast<std::size_t>(right));
        if (a.tokens != b.tokens) return sign * a.tokens > sign * b.tokens;
        if (a.fetch_gain_seconds != b.fetch_gain_seconds) return a.fetch_gain_seconds > b.fetch_gain_seconds;
        return left < right;
    });
    return misses;
}

}  // namespace

bool fetch_to_best_device(StepState& state, std::size_t i) {
    std::int32_t chosen = kNoDevice;
    StepScore best{};
    for (std::int32_t device = 0; device < state.device_count(); ++device) {
        if (!state.has_room(device)) continue;
        state.move(i, {Work::Fetch, device});
        const StepScore now = state.score();
        if (chosen == kNoDevice || now.better_than(best)) {
            chosen = device;
            best = now;
        }
        state.move(i, {});
    }
    if (chosen != kNoDevice) state.move(i, {Work::Fetch, chosen});
    return chosen != kNoDevice;
}

void fetch_while_it_helps(StepState& state, std::span<std::int32_t> misses) {
    misses = sorted_misses(state, misses);
    const auto miss = [&](std::size_t i) { return static_cast<std::size_t>(misses[i]); };
    StepScore best = state.score();
    std::size_t kept = 0;
    std::size_t tried = 0;
    for (; tried < misses.size() && fetch_to_best_device(state, miss(tried)); ++tried) {
        const StepScore now = state.score();
        if (!now.better_than(best)) continue;
        best = now;
        kept = tried + 1;
    }
    for (std::size_t i = kept; i < tried; ++i) state.move(miss(i), {});
}

}  // namespace coterie::expert_cache
