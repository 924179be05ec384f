#pragma once

#include <functional>
#include <memory>

#include "devices/fake_device.h"
#include "engine/forward/hybrid/device_experts.h"

namespace coterie::engine {

/// Experts on a fake device, computed by the CPU's kernels with the canonical arithmetic from the device's
/// memory, in modelled time.
class FakeDeviceExperts final : public DeviceExperts {
  public:
    /// The modelled time of one expert: its bytes and the tokens that share it.
    using Duration = std::function<Nanoseconds(std::uint64_t bytes, std::int64_t tokens)>;

    struct Shape {
        std::int64_t input_width;
        std::int64_t output_width;
        std::int64_t largest_hidden;  ///< columns of the widest down matrix
        DeviceLimits small;           ///< up to here memory is allocated at start
        DeviceLimits largest;
    };

    /// Device memory that is taken at start.
    static std::uint64_t buffer_bytes(const Shape& shape);
    /// Device memory that a layer of this size needs which is not small.
    static std::uint64_t large_bytes(const Shape& shape, const DeviceLimits& limits);

    /// Takes memory for small layers; throws OutOfMemory where the device has not that much.
    FakeDeviceExperts(FakeDevice& device, const Shape& shape, Duration duration);

    Device& device() override { return device_; }
    Stream& stream() override { return *stream_; }
    std::uint64_t workspace_bytes(const DeviceLimits& limits) const override;
    void begin(std::span<const ActivationRow> inputs, std::int64_t output_width,
               DeviceAddress workspace) override;
    void compute(const ExpertJob& job, const SlotLayout& layout, DeviceAddress slot,
                 std::span<const std::int32_t> tokens) override;
    void finish() override;
    EventState wait(std::chrono::nanoseconds limit) override;
    const float* output(std::int64_t i) const override;
    LayerTimes times() const override;

  private:
    std::uint64_t input_bytes(std::int64_t tokens) const;
    std::uint64_t output_bytes(std::int64_t assignments) const;
    bool is_small(const DeviceLimits& limits) const;
    void pack(const ActivationRow& row, std::byte* to) const;
    ActivationRow unpack(const std::byte* from) const;
    void run_kernel(const ExpertJob& job, const SlotLayout& layout, DeviceAddress slot,
                    std::span<const std::int32_t> rows, DeviceAddress inputs, DeviceAddress outputs);

    FakeDevice& device_;
    const Shape shape_;
    const Duration duration_;
    const std::int64_t groups_;      ///< stored groups of an input row
    const std::uint64_t row_bytes_;  ///< of a packed input row
    std::unique_ptr<FakeStream> stream_;
    std::unique_ptr<Event> done_;
    std::unique_ptr<DeviceMemory> memory_;          ///< inputs, then outputs of small layers
    std::unique_ptr<PinnedMemory> packed_inputs_;   ///< [largest.tokens][row_bytes]
    std::unique_ptr<PinnedMemory> packed_outputs_;  ///< [largest.assignments][output_width]

    ThreadPool pool_;  ///< the caller alone
    ExpertPass pass_;
    ExpertPlan kernel_plan_;
    std::vector<ActivationRow> kernel_inputs_;

    DeviceAddress inputs_{};
    DeviceAddress outputs_{};
    std::int64_t output_width_ = 0;
    std::int64_t computed_ = 0;    ///< assignments since `begin`
    Nanoseconds compute_time_{0};  ///< since `begin`
};

}  // namespace coterie::engine
