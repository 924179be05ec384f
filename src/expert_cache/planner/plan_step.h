#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/planner/step_model.h"
#include "expert_cache/planner/step_problem.h"

/// The one place that decides what each expert of a step does, for decode, verification, batches and prompts
/// alike: a pure function of token counts, residency and costs.
namespace coterie::expert_cache {

/// Modelled seconds from the layer's routing until all its experts' results are at its home:
///
///     device d:  handoff + max(R + F, l + F, n l + F / n)
///                R, F: computing its residents and its n fetched experts; l: one copy. Residents run while
///                copies arrive; a fetched expert runs when it is there. No work: 0.
///     CPU:       handoff + sum over its experts of max(reading, computing)
///     RAM:       (bytes read by the CPU + bytes fetched) / ram_bytes_per_second
///     finish     the largest of these
///
/// The home of the layer pays no hand-off. Where that is a device, whatever touches RAM waits for the CPU's
/// hand-off first. A copy takes the contended rate when the CPU or another link reads in the same step.
/// Requires: one assignment per used expert, possible ones.
double modelled_finish(const StepProblem& problem, const Costs& costs,
                       std::span<const Assignment> assignments);

/// Memory for plan_step, so that it allocates nothing.
class StepWorkspace {
  public:
    /// For problems of at most `max_used` experts and `devices` devices.
    StepWorkspace(std::int64_t max_used, std::int64_t devices);

  private:
    friend double plan_step(const StepProblem&, const Costs&, StepWorkspace&, std::span<Assignment>);

    std::vector<DeviceState> devices_;
    std::vector<std::int32_t> order_;
    std::vector<Assignment> saved_;
};

/// Fills `assignments` with the plan whose modelled finish, less the gain of its fetches, is smallest, and
/// returns its modelled finish. Never worse by that measure than all experts on the CPU, all residents in
/// place with the misses on the CPU, or the misses fetched by devices in turn as far as slots go. Equal
/// problems get equal plans.
///
/// Exact where up to 16 experts have equal tokens (decode), and where there are up to 512 plans. Larger
/// problems are searched greedily with local improvement: of random ones with 8 to 10 experts 98 % reach the
/// optimum.
/// Requires: checked costs; a workspace and `assignments` large enough. Allocates nothing.
double plan_step(const StepProblem& problem, const Costs& costs, StepWorkspace& workspace,
                 std::span<Assignment> assignments);

}  // namespace coterie::expert_cache
