#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/plan/planning.h"
#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/placement.h"

namespace coterie::cli::plan {

struct PlanReport {
    std::string model;
    const expert_cache::ModelFacts& facts;
    const std::vector<expert_cache::DeviceFacts>& devices;
    const expert_cache::PlacementRequest& request;
    const expert_cache::Costs& costs;
    const expert_cache::Placement& placement;
    const PromptWindow& window;
};

std::string render_text(const PlanReport& report);
std::string render_json(const PlanReport& report);

}  // namespace coterie::cli::plan
