#include "expert_cache/planner/plan_step.h"

#include "base/error.h"
#include "expert_cache/planner/step_search.h"

namespace coterie::expert_cache {
namespace {

void check_possible(const UsedExpert& used, Assignment work) {
    if (work.work == Work::Resident) COTERIE_CHECK(work.device != kNoDevice && work.device == used.device);
    if (work.work == Work::Fetch) COTERIE_CHECK(work.device != kNoDevice && used.device == kNoDevice);
}

bool same_tokens(const StepProblem& problem) {
    for (const UsedExpert& used : problem.used) {
        if (used.tokens != problem.used.front().tokens) return false;
    }
    return true;
}

}  // namespace

double modelled_finish(const StepProblem& problem, const Costs& costs,
                       std::span<const Assignment> assignments) {
    COTERIE_CHECK(assignments.size() == problem.used.size());
    std::vector<DeviceState> devices(costs.devices.size());
    StepModel model(problem, costs, devices);
    for (std::size_t i = 0; i < assignments.size(); ++i) {
        check_possible(problem.used[i], assignments[i]);
        model.add(problem.used[i], assignments[i]);
    }
    return model.score().finish;
}

StepWorkspace::StepWorkspace(std::int64_t max_used, std::int64_t devices)
    : devices_(static_cast<std::size_t>(devices)),
      order_(static_cast<std::size_t>(max_used)),
      saved_(static_cast<std::size_t>(max_used)) {}

double plan_step(const StepProblem& problem, const Costs& costs, StepWorkspace& workspace,
                 std::span<Assignment> assignments) {
    COTERIE_CHECK(workspace.devices_.size() == costs.devices.size());
    COTERIE_CHECK(problem.spare_slots.size() == costs.devices.size());
    COTERIE_CHECK(problem.used.size() <= workspace.saved_.size());
    COTERIE_CHECK(problem.used.size() <= assignments.size());
    StepState state(problem, costs, workspace.devices_, assignments, workspace.saved_);
    if (same_tokens(problem) && problem.used.size() <= kCountsLimit) {
        search_counts(state, workspace.order_);
    } else if (count_plans(state) <= kAllPlansLimit) {
        search_all(state);
    } else {
        fetch_while_it_helps(state, workspace.order_);
        improve(state);
    }
    return state.score().finish;
}

}  // namespace coterie::expert_cache
