#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/placement_facts.h"
#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/placement.h"
#include "expert_cache/planner/plan_window.h"

/// How many tokens of a prompt go through the layers together where devices hold experts: each window streams
/// the experts that no device holds once.
namespace coterie::engine {

/// What bounds a window besides the balance of streaming and computing.
struct WindowBounds {
    std::int64_t prompt_tokens;
    std::int64_t most_tokens;       ///< of a window: the context, or what was allocated
    std::uint64_t bytes_per_token;  ///< of device memory, of the device that needs most
    std::uint64_t lent_bytes;       ///< that the poorest device can lend for it
};

/// The problem for `plan_window`. `missing`: [layers] experts that no device holds. Experts are computed by
/// all devices together; the rest of a layer by the CPU or the fastest device, as `dense` says.
expert_cache::WindowProblem window_problem(const PlacementFacts& facts, const expert_cache::Costs& costs,
                                           std::span<const std::int32_t> missing,
                                           expert_cache::DensePlace dense, const WindowBounds& bounds,
                                           std::vector<expert_cache::WindowLayer>& layers);

/// What the poorest device that takes part can lend: half of its slots, less a ring. A device that has no
/// room for `least` bytes sits prompts out; nothing where all do.
std::optional<std::uint64_t> lendable_bytes(std::span<const std::uint64_t> slot_bytes, std::uint64_t ring,
                                            std::uint64_t least);

/// [layers] experts that no device will hold with a placement, once its slots but the spare ones are full.
std::vector<std::int32_t> missing_experts(const PlacementFacts& facts,
                                          const expert_cache::Placement& placement, std::int32_t spare_slots);

}  // namespace coterie::engine
