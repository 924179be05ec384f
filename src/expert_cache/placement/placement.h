#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "expert_cache/costs/costs.h"
#include "expert_cache/placement/facts.h"

namespace coterie::expert_cache {

enum class Strategy {
    CpuOnly,   ///< no device computes experts
    Static,    ///< experts of whole layers, or a profile's hottest, are loaded once and stay
    Cache,     ///< slots hold the experts in use
    Resident,  ///< every expert that may leave the CPU is on a device: nothing to cache
};

struct DevicePlan {
    std::int32_t first_layer = 0;  ///< layers whose dense weights and state are here
    std::int32_t layer_count = 0;
    std::uint64_t dense_bytes = 0;
    std::uint64_t kv_bytes = 0;
    std::uint64_t workspace_bytes = 0;
    std::uint64_t slot_bytes = 0;
    std::uint64_t reserve_bytes = 0;
    std::uint64_t unused_bytes = 0;
    std::vector<std::int32_t> slots;  ///< [layers], spare ones included
};

struct RamPlan {
    std::uint64_t dense_bytes = 0;
    std::uint64_t kv_bytes = 0;
    std::uint64_t workspace_bytes = 0;
    std::uint64_t expert_bytes = 0;  ///< that RAM holds; with exclusive residency only what no device does
    std::uint64_t pinned_bytes = 0;  ///< staging
    std::uint64_t disk_bytes = 0;    ///< of experts that neither RAM nor devices hold: read when used
};

struct Placement {
    Strategy strategy = Strategy::CpuOnly;
    std::string reason;  ///< one line: why this strategy
    std::vector<DevicePlan> devices;
    RamPlan ram;
    bool exclusive = false;  ///< RAM holds only the experts that no device holds
    bool profiled =
        false;  ///< hit rates follow a profile; else experts' uses are assumed to fall as 1 / rank
    std::vector<double> layer_hit_rates;  ///< [layers], 0 where there are no experts
    double hit_rate = 0;                  ///< of all uses of experts
    double seconds_per_token = 0;         ///< modelled, one token alone, context empty
};

/// A request that cannot be met.
struct Refusal {
    std::string problem;  ///< one line with the numbers
    std::uint64_t missing_bytes = 0;
    std::string way_out;                      ///< one line: what to change
    std::optional<PlacementRequest> nearest;  ///< the request changed so that it works; nothing if none would
};

using PlacementResult = std::variant<Placement, Refusal>;

/// What goes where, decided once at start: dense weights and state first, then slots from what is left, then
/// whether slots that follow the use pay over the best fixed placement, by the modelled time of a token.
///
/// Layers whose dense weights go to devices are cut into one range per device by free memory. Slots of a
/// layer are on its own device first, then wherever room is left. Their number follows a profile (`usage`) by
/// the time that a slot's bytes save, and is equal in bytes without one (null).
/// Requires: checked costs with one entry per device and a kind for every layer. Throws InvalidArgument where
/// sizes overflow 64 bits.
PlacementResult plan_placement(const ModelFacts& model, const std::vector<DeviceFacts>& devices,
                               const Costs& costs, const PlacementRequest& request, const UsageCounts* usage);

}  // namespace coterie::expert_cache
