#include "expert_cache/planner/step_search.h"

namespace coterie::expert_cache {
namespace {

/// Gives experts from `first` on every work they can do; `best` is the score of the saved plan.
void search_from(StepState& state, std::size_t first, StepScore& best) {
    if (first == state.size()) {
        if (!state.score().better_than(best)) return;
        best = state.score();
        state.save();
        return;
    }
    state.move(first, {});
    search_from(state, first + 1, best);
    if (state.resident(first)) {
        state.move(first, state.in_place(first));
        search_from(state, first + 1, best);
        return;
    }
    for (std::int32_t device = 0; device < state.device_count(); ++device) {
        state.move(first, {});
        if (!state.has_room(device)) continue;
        state.move(first, {Work::Fetch, device});
        search_from(state, first + 1, best);
    }
    state.move(first, {});
}

}  // namespace

std::int64_t count_plans(const StepState& state) {
    std::int64_t plans = 1;
    for (std::size_t i = 0; i < state.size() && plans <= kAllPlansLimit; ++i) {
        plans *= state.resident(i) ? 2 : 1 + state.device_count();
    }
    return std::min(plans, kAllPlansLimit + 1);
}

void search_all(StepState& state) {
    for (std::size_t i = 0; i < state.size(); ++i) state.move(i, state.in_place(i));
    StepScore best = state.score();
    state.save();
    for (std::size_t i = 0; i < state.size(); ++i) state.move(i, {});
    search_from(state, 0, best);
    state.restore();
}

}  // namespace coterie::expert_cache
