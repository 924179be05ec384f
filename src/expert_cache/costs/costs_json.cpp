#include "expert_cache/costs/costs_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace coterie::expert_cache {

// One list of fields per struct serves both directions; the library finds it by its name.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComputeCosts, expert_seconds, row_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuCosts, read_bytes_per_second, handoff_seconds, compute)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceCosts, link_bytes_per_second, contended_link_bytes_per_second,
                                   copy_seconds, memory_bytes_per_second, handoff_seconds, compute)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Costs, kinds, cpu, devices, ram_bytes_per_second)

std::string costs_to_json(const Costs& costs) { return nlohmann::json(costs).dump(2); }

Costs costs_from_json(std::string_view text, std::string_view origin) {
    Costs costs;
    try {
        nlohmann::json::parse(text).get_to(costs);
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::InvalidArgument, "{}: no costs: {}; `coterie plan --json` prints some", origin,
             error.what());
    }
    check_costs(costs, origin);
    return costs;
}

}  // namespace coterie::expert_cache
