#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/plan/machine.h"
#include "engine/placement_facts.h"
#include "expert_cache/placement/placement.h"
#include "expert_cache/planner/plan_window.h"
#include "gguf/archive.h"

namespace coterie::cli {
struct ModelOptions;
}

namespace coterie::cli::plan {

/// How prompts are cut.
struct PromptWindow {
    std::int64_t tokens = 0;  ///< that go through the layers together at most
    /// Why not more, by the planner; nothing where -b or --window says it.
    std::optional<expert_cache::WindowPlan> plan;
};

/// A run's placement, and everything that it was planned from.
struct RunPlan {
    std::unique_ptr<models::Model> model;
    std::vector<expert_cache::DeviceFacts> devices;
    engine::PlacementFacts facts;
    expert_cache::PlacementRequest request;
    expert_cache::Costs costs;
    expert_cache::Placement placement;
    PromptWindow window;
};

/// What --window says; nothing for "auto". Throws InvalidArgument.
std::optional<std::int64_t> fixed_window(const std::string& value);

/// Plans what the flags ask for. Measures the machine in about a second where `costs` leaves that open.
/// Throws OutOfMemory with what a refused plan says, InvalidArgument naming a flag.
RunPlan plan_run(const gguf::Archive& archive, const ModelOptions& options, const CostSetting& costs,
                 expert_cache::DensePlace dense);

}  // namespace coterie::cli::plan
