#pragma once

#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/expected_hits.h"
#include "expert_cache/placement/memory_plan.h"
#include "expert_cache/placement/placement.h"
#include "expert_cache/placement/slot_shares.h"

namespace coterie::expert_cache {

/// One way to use the devices' memory, and the modelled time of a token with it.
struct Candidate {
    Strategy strategy;
    SlotCounts slots;
    std::vector<double> hit_rates;  ///< [layers]
    double seconds_per_token = 0;
    double uploads_per_token = 0;
};

/// What all candidates are made of.
struct StrategyProblem {
    const ModelFacts& model;
    const Costs& costs;
    const PlacementRequest& request;
    const MemoryPlan& memory;
    const HitCurves& curves;
    bool profiled;
};

/// Layers whose experts may leave the CPU.
bool may_leave_cpu(const StrategyProblem& problem, std::size_t layer);

Candidate cpu_only(const StrategyProblem& problem);
/// Slots by profile or equal bytes; Resident where every layer that may has all its experts in them.
Candidate cached(const StrategyProblem& problem);
/// Whole layers, those first that save most time per byte, later ones before earlier ones; with a profile,
/// the hottest experts.
Candidate fixed(const StrategyProblem& problem);

/// Without any expert on a device.
SlotCounts no_slots(const StrategyProblem& problem);

}  // namespace coterie::expert_cache
