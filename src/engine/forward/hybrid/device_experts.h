#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "devices/device.h"
#include "engine/forward/expert_pass.h"
#include "engine/forward/hybrid/expert_catalog.h"

namespace coterie::engine {

/// The largest layer of a step that a device will meet.
struct DeviceLimits {
    std::int64_t tokens;
    std::int64_t assignments;
};

/// What a layer took, as far as the device can tell; 0: it cannot.
struct LayerTimes {
    double compute_seconds = 0;  ///< of its products, on the device's clock, without waits for copies
    double handoff_seconds = 0;  ///< from the queueing until the outputs were back, without the products
};

/// Computes experts on one device: the inputs go there, each expert's product runs in the order of a stream,
/// the outputs come back. Everything is queued; only `wait` blocks. What fails while it runs is told by
/// `wait`, what the device refuses at once throws `Error`.
class DeviceExperts {
  public:
    virtual ~DeviceExperts() = default;

    virtual Device& device() = 0;
    /// Copies of experts that a layer needs are queued here before `compute`.
    virtual Stream& stream() = 0;

    /// Device memory that layers of such a size need beyond what was allocated at start; 0 for small ones.
    virtual std::uint64_t workspace_bytes(const DeviceLimits& limits) const = 0;

    /// Begins a layer. `workspace`: of that many bytes; ignored where 0 were asked for.
    virtual void begin(std::span<const ActivationRow> inputs, std::int64_t output_width,
                       DeviceAddress workspace) = 0;
    /// One expert, whose bytes stand at `slot` when the stream gets there. `tokens`: [assignments of the
    /// plan].
    virtual void compute(const ExpertJob& job, const SlotLayout& layout, DeviceAddress slot,
                         std::span<const std::int32_t> tokens) = 0;
    /// Sends the outputs of all jobs since `begin` back.
    virtual void finish() = 0;

    /// Waits for everything since `begin`, at most for `limit`. After a failure that was not the loss of the
    /// device, the stream can be used again.
    virtual EventState wait(std::chrono::nanoseconds limit) = 0;
    /// Row of the i-th assignment computed since `begin`, [output_width]; until the next `begin`.
    virtual const float* output(std::int64_t i) const = 0;
    /// Of the layer that `wait` has said was reached.
    virtual LayerTimes times() const { return {}; }
};

}  // namespace coterie::engine
