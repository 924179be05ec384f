#include "expert_cache/costs/costs.h"

#include <cmath>
#include <fmt/format.h>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

void require_rate(double value, std::string_view origin, const std::string& field) {
    if (std::isfinite(value) && value > 0) return;
    fail(ErrorCode::InvalidArgument, "{}: {} is {}, must be above 0 bytes per second", origin, field, value);
}

void require_time(double value, std::string_view origin, const std::string& field) {
    if (std::isfinite(value) && value >= 0) return;
    fail(ErrorCode::InvalidArgument, "{}: {} is {}, must be 0 seconds or more", origin, field, value);
}

void require_compute(const std::vector<ComputeCosts>& compute, std::size_t kinds, std::string_view origin,
                     const std::string& field) {
    if (compute.size() != kinds) {
        fail(ErrorCode::InvalidArgument, "{}: {} has {} entries, must have one for each of the {} kinds",
             origin, field, compute.size(), kinds);
    }
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        require_time(compute[kind].expert_seconds, origin, fmt::format("{}[{}].expert_seconds", field, kind));
        require_time(compute[kind].row_seconds, origin, fmt::format("{}[{}].row_seconds", field, kind));
    }
}

void check_device(const DeviceCosts& device, std::size_t kinds, std::string_view origin,
                  const std::string& field) {
    require_rate(device.link_bytes_per_second, origin, field + ".link_bytes_per_second");
    require_rate(device.contended_link_bytes_per_second, origin, field + ".contended_link_bytes_per_second");
    require_rate(device.memory_bytes_per_second, origin, field + ".memory_bytes_per_second");
    require_time(device.copy_seconds, origin, field + ".copy_seconds");
    require_time(device.handoff_seconds, origin, field + ".handoff_seconds");
    require_compute(device.compute, kinds, origin, field + ".compute");
}

}  // namespace

void check_costs(const Costs& costs, std::string_view origin) {
    if (costs.kinds.empty()) fail(ErrorCode::InvalidArgument, "{}: kinds is empty, must name one", origin);
    require_rate(costs.ram_bytes_per_second, origin, "ram_bytes_per_second");
    require_rate(costs.cpu.read_bytes_per_second, origin, "cpu.read_bytes_per_second");
    require_time(costs.cpu.handoff_seconds, origin, "cpu.handoff_seconds");
    require_compute(costs.cpu.compute, costs.kinds.size(), origin, "cpu.compute");
    for (std::size_t device = 0; device < costs.devices.size(); ++device) {
        check_device(costs.devices[device], costs.kinds.size(), origin, fmt::format("devices[{}]", device));
    }
}

}  // namespace coterie::expert_cache
