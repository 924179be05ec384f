#include "expert_cache/placement/memory_plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "expert_cache/planner/step_problem.h"

namespace coterie::expert_cache {
namespace {

/// Adds up in 64 bits and remembers an overflow.
class CheckedSum {
  public:
    void add(std::uint64_t bytes) { add(std::optional(bytes)); }
    void add_product(std::uint64_t a, std::uint64_t b) { add(checked_multiply(a, b)); }
    std::optional<std::uint64_t> sum() const { return sum_; }

  private:
    void add(std::optional<std::uint64_t> bytes) {
        sum_ = sum_ && bytes ? checked_add(*sum_, *bytes) : std::nullopt;
    }
    std::optional<std::uint64_t> sum_ = 0;
};

/// All sizes together fit 64 bits, so that no part of them needs a check later.
void check_sizes(const ModelFacts& model, const std::vector<DeviceFacts>& devices,
                 const PlacementRequest& request) {
    COTERIE_CHECK(request.context >= 0 && request.spare_slots >= 0 && request.cpu_moe_layers >= 0);
    CheckedSum all;
    all.add(model.embedding_bytes);
    all.add(model.output_bytes);
    for (const LayerFacts& layer : model.layers) {
        COTERIE_CHECK(layer.experts >= 0 && layer.experts_used >= 0 && layer.experts_used <= layer.experts);
        COTERIE_CHECK(layer.experts == 0 || layer.expert_bytes > 0);
        all.add(layer.dense_bytes);
        all.add(layer.state_bytes);
        all.add_product(layer.kv_bytes_per_token, static_cast<std::uint64_t>(request.context));
        all.add_product(layer.expert_bytes, static_cast<std::uint64_t>(layer.experts));
    }
    all.add_product(model.workspace_bytes, devices.size() + 1);
    all.add_product(request.staging_bytes, devices.size());
    all.add(request.reserve_bytes);
    if (all.sum()) return;
    fail(ErrorCode::InvalidArgument,
         "the sizes of the model with a context of {} tokens overflow 64 bits; use a smaller context (-c)",
         request.context);
}

std::uint64_t kv_bytes(const LayerFacts& layer, const PlacementRequest& request) {
    return layer.kv_bytes_per_token * static_cast<std::uint64_t>(request.context) + layer.state_bytes;
}

/// What of the device may be used besides the reserve; nothing where it has less than is asked for.
std::variant<std::uint64_t, Refusal> usable_bytes(const DeviceFacts& device, std::size_t index,
                                                  const PlacementRequest& request) {
    const bool limited = index < request.vram_bytes.size();
    const std::uint64_t bytes = limited ? request.vram_bytes[index] : device.free_bytes;
    if (bytes > device.free_bytes) {
        return Refusal{.problem = fmt::format("device {} ({}) has {} bytes free, --vram asks for {}", index,
                                              device.name, device.free_bytes, bytes),
                       .missing_bytes = bytes - device.free_bytes,
                       .way_out = "",
                       .nearest = {}};
    }
    if (bytes < request.reserve_bytes) {
        return Refusal{.problem = fmt::format("device {} ({}) may use {} bytes, less than the reserve of {}",
                                              index, device.name, bytes, request.reserve_bytes),
                       .missing_bytes = request.reserve_bytes - bytes,
                       .way_out = "",
                       .nearest = {}};
    }
    return bytes - request.reserve_bytes;
}

/// Ranges of layers in the devices' order, cut so that each device's share of the bytes is its share of the
/// memory.
std::vector<std::int32_t> split_layers(const ModelFacts& model, const std::vector<std::uint64_t>& usable,
                                       const PlacementRequest& request) {
    double bytes = 0;
    double memory = 0;
    for (const LayerFacts& layer : model.layers) {
        bytes += static_cast<double>(layer.dense_bytes + kv_bytes(layer, request));
    }
    for (const std::uint64_t device : usable) memory += static_cast<double>(device);
    std::vector<std::int32_t> owner;
    double placed = 0;
    double room = static_cast<double>(usable[0]);
    std::size_t device = 0;
    for (const LayerFacts& layer : model.layers) {
        const double size = static_cast<double>(layer.dense_bytes + kv_bytes(layer, request));
        while (device + 1 < usable.size() && (placed + size / 2) * memory > room * bytes) {
            room += static_cast<double>(usable[++device]);
        }
        owner.push_back(static_cast<std::int32_t>(device));
        placed += size;
    }
    return owner;
}

void place_layer(MemoryPlan& plan, std::size_t index, const ModelFacts& model,
                 const PlacementRequest& request) {
    const LayerFacts& layer = model.layers[index];
    if (plan.owner[index] == kNoDevice) {
        plan.ram.dense_bytes += layer.dense_bytes;
        plan.ram.kv_bytes += kv_bytes(layer, request);
        return;
    }
    DevicePlan& device = plan.devices[static_cast<std::size_t>(plan.owner[index])];
    if (device.layer_count++ == 0) device.first_layer = static_cast<std::int32_t>(index);
    device.dense_bytes += layer.dense_bytes;
    device.kv_bytes += kv_bytes(layer, request);
}

/// The output matrix goes where the last layer is.
void place_output(MemoryPlan& plan, const ModelFacts& model) {
    const std::int32_t last = plan.owner.empty() ? kNoDevice : plan.owner.back();
    std::uint64_t& dense =
        last == kNoDevice ? plan.ram.dense_bytes : plan.devices[static_cast<std::size_t>(last)].dense_bytes;
    dense += model.output_bytes;
}

/// Takes what is placed off what is usable.
std::optional<Refusal> fill_devices(MemoryPlan& plan, const std::vector<DeviceFacts>& devices,
                                    const std::vector<std::uint64_t>& usable, const ModelFacts& model) {
    for (std::size_t i = 0; i < plan.devices.size(); ++i) {
        DevicePlan& device = plan.devices[i];
        if (device.layer_count > 0) device.workspace_bytes = model.workspace_bytes;
        const std::uint64_t needed = device.dense_bytes + device.kv_bytes + device.workspace_bytes;
        if (needed > usable[i]) {
            return Refusal{.problem = fmt::format(
                               "device {} ({}) needs {} bytes for dense weights, {} for the context and {} "
                               "for workspace, and may use {} besides its reserve",
                               i, devices[i].name, device.dense_bytes, device.kv_bytes,
                               device.workspace_bytes, usable[i]),
                           .missing_bytes = needed - usable[i],
                           .way_out = "",
                           .nearest = {}};
        }
        device.unused_bytes = usable[i] - needed;
    }
    return std::nullopt;
}

std::optional<Refusal> fill_ram(MemoryPlan& plan, const ModelFacts& model, const PlacementRequest& request) {
    plan.ram.dense_bytes += model.embedding_bytes;
    plan.ram.workspace_bytes = model.workspace_bytes;
    plan.ram.pinned_bytes = request.staging_bytes * plan.devices.size();
    const std::uint64_t needed =
        plan.ram.dense_bytes + plan.ram.kv_bytes + plan.ram.workspace_bytes + plan.ram.pinned_bytes;
    if (needed > request.ram_bytes) {
        return Refusal{.problem = fmt::format(
                           "RAM needs {} bytes for dense weights, {} for the context, {} for workspace and "
                           "{} of staging, and may use {}",
                           plan.ram.dense_bytes, plan.ram.kv_bytes, plan.ram.workspace_bytes,
                           plan.ram.pinned_bytes, request.ram_bytes),
                       .missing_bytes = needed - request.ram_bytes,
                       .way_out = "",
                       .nearest = {}};
    }
    plan.ram_for_experts_bytes = request.ram_bytes - needed;
    return std::nullopt;
}

}  // namespace

MemoryResult plan_memory(const ModelFacts& model, const std::vector<DeviceFacts>& devices,
                         const PlacementRequest& request) {
    check_sizes(model, devices, request);
    MemoryPlan plan;
    std::vector<std::uint64_t> usable;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        auto bytes = usable_bytes(devices[i], i, request);
        if (auto* refusal = std::get_if<Refusal>(&bytes)) return std::move(*refusal);
        usable.push_back(std::get<std::uint64_t>(bytes));
        plan.devices.emplace_back().reserve_bytes = request.reserve_bytes;
        plan.devices.back().slots.assign(model.layers.size(), 0);
    }
    const bool on_devices = request.dense == DensePlace::Devices && !devices.empty();
    plan.owner = on_devices ? split_layers(model, usable, request)
                            : std::vector<std::int32_t>(model.layers.size(), kNoDevice);
    for (std::size_t i = 0; i < model.layers.size(); ++i) place_layer(plan, i, model, request);
    place_output(plan, model);
    if (auto refusal = fill_devices(plan, devices, usable, model)) return std::move(*refusal);
    if (auto refusal = fill_ram(plan, model, request)) return std::move(*refusal);
    return plan;
}

}  // namespace coterie::expert_cache
