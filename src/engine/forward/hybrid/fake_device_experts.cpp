#include "engine/forward/hybrid/fake_device_experts.h"

#include <cstring>

#include "base/error.h"

namespace coterie::engine {
namespace {

constexpr std::uint64_t kAlignment = 256;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Of one group in a packed row: values, quants, scale, scaled sum, half sums.
constexpr std::int64_t kGroupBytes = kGroupValues * 4 + kGroupValues + 4 + 4 + 4;

std::uint64_t packed_row_bytes(std::int64_t input_width) {
    return aligned(static_cast<std::uint64_t>(stored_groups(input_width) * kGroupBytes));
}

std::uint64_t packed_output_bytes(std::int64_t assignments, std::int64_t output_width) {
    return aligned(static_cast<std::uint64_t>(assignments * output_width) * sizeof(float));
}

}  // namespace

std::uint64_t FakeDeviceExperts::buffer_bytes(const Shape& shape) {
    return static_cast<std::uint64_t>(shape.small.tokens) * packed_row_bytes(shape.input_width) +
           packed_output_bytes(shape.small.assignments, shape.output_width);
}

std::uint64_t FakeDeviceExperts::large_bytes(const Shape& shape, const DeviceLimits& limits) {
    return static_cast<std::uint64_t>(limits.tokens) * packed_row_bytes(shape.input_width) +
           packed_output_bytes(limits.assignments, shape.output_width);
}

FakeDeviceExperts::FakeDeviceExperts(FakeDevice& device, const Shape& shape, Duration duration)
    : device_(device),
      shape_(shape),
      duration_(std::move(duration)),
      groups_(stored_groups(shape.input_width)),
      row_bytes_(packed_row_bytes(shape.input_width)),
      stream_(device.create_fake_stream()),
      done_(device.create_event()),
      memory_(device.allocate(buffer_bytes(shape))),
      packed_inputs_(device.allocate_pinned(input_bytes(shape.largest.tokens))),
      packed_outputs_(device.allocate_pinned(output_bytes(shape.largest.assignments))),
      pool_(1),
      pass_(pool_, {.max_tokens = shape.largest.tokens,
                    .max_assignments = shape.largest.tokens,
                    .hidden_groups = shape.largest.tokens * stored_groups(shape.largest_hidden),
                    .keep_values = true}) {}

std::uint64_t FakeDeviceExperts::input_bytes(std::int64_t tokens) const {
    return static_cast<std::uint64_t>(tokens) * row_bytes_;
}

std::uint64_t FakeDeviceExperts::output_bytes(std::int64_t assignments) const {
    return packed_output_bytes(assignments, shape_.output_width);
}

bool FakeDeviceExperts::is_small(const DeviceLimits& limits) const {
    return limits.tokens <= shape_.small.tokens && limits.assignments <= shape_.small.assignments;
}

std::uint64_t FakeDeviceExperts::workspace_bytes(const DeviceLimits& limits) const {
    return is_small(limits) ? 0 : large_bytes(shape_, limits);
}

/// Values, quants, scales, scaled sums and half sums, each for all groups.
void FakeDeviceExperts::pack(const ActivationRow& row, std::byte* to) const {
    const auto groups = static_cast<std::size_t>(activation_groups(shape_.input_width));
    const auto put = [&](const void* from, std::size_t group_bytes) {
        if (from != nullptr) std::memcpy(to, from, groups * group_bytes);
        to += static_cast<std::size_t>(groups_) * group_bytes;
    };
    put(row.values, kGroupValues * sizeof(float));
    put(row.quants, kGroupValues);
    put(row.scales, sizeof(float));
    put(row.scaled_sums, sizeof(float));
    put(row.half_sums, 2 * sizeof(std::int16_t));
}

ActivationRow FakeDeviceExperts::unpack(const std::byte* from) const {
    const auto take = [&](std::size_t group_bytes) {
        const std::byte* at = from;
        from += static_cast<std::size_t>(groups_) * group_bytes;
        return at;
    };
    ActivationRow row{};
    row.columns = shape_.input_width;
    row.values = reinterpret_cast<const float*>(take(kGroupValues * sizeof(float)));
    row.quants = reinterpret_cast<const std::int8_t*>(take(kGroupValues));
    row.scales = reinterpret_cast<const float*>(take(sizeof(float)));
    row.scaled_sums = reinterpret_cast<const float*>(take(sizeof(float)));
    row.half_sums = reinterpret_cast<const std::int16_t*>(take(2 * sizeof(std::int16_t)));
    return row;
}

void FakeDeviceExperts::begin(std::span<const ActivationRow> inputs, std::int64_t output_width,
                              DeviceAddress workspace) {
    const auto tokens = static_cast<std::int64_t>(inputs.size());
    COTERIE_CHECK(tokens <= shape_.largest.tokens && output_width == shape_.output_width);
    inputs_ = tokens <= shape_.small.tokens ? memory_->address() : workspace;
    outputs_ = inputs_ + input_bytes(tokens <= shape_.small.tokens ? shape_.small.tokens : tokens);
    output_width_ = output_width;
    computed_ = 0;
    compute_time_ = Nanoseconds(0);
    std::byte* packed = packed_inputs_->span().data();
    for (std::int64_t t = 0; t < tokens; ++t) {
        pack(inputs[static_cast<std::size_t>(t)], packed + static_cast<std::uint64_t>(t) * row_bytes_);
    }
    stream_->copy_to_device(inputs_, {packed, static_cast<std::size_t>(input_bytes(tokens))});
}

void FakeDeviceExperts::compute(const ExpertJob& job, const SlotLayout& layout, DeviceAddress slot,
                                std::span<const std::int32_t> tokens) {
    const auto rows =
        tokens.subspan(static_cast<std::size_t>(job.first), static_cast<std::size_t>(job.count));
    const DeviceAddress outputs =
        outputs_ + static_cast<std::uint64_t>(computed_ * output_width_) * sizeof(float);
    const Nanoseconds duration = duration_(layout.bytes, job.count);
    stream_->launch([this, job, &layout, slot, rows = std::vector<std::int32_t>(rows.begin(), rows.end()),
                     inputs = inputs_, outputs] { run_kernel(job, layout, slot, rows, inputs, outputs); },
                    duration);
    compute_time_ += duration;
    computed_ += job.count;
}

void FakeDeviceExperts::run_kernel(const ExpertJob& job, const SlotLayout& layout, DeviceAddress slot,
                                   std::span<const std::int32_t> rows, DeviceAddress inputs,
                                   DeviceAddress outputs) {
    kernel_inputs_.clear();
    kernel_plan_.tokens.clear();
    for (const std::int32_t row : rows) {
        const DeviceAddress at = inputs + static_cast<std::uint64_t>(row) * row_bytes_;
        kernel_plan_.tokens.push_back(static_cast<std::int32_t>(kernel_inputs_.size()));
        kernel_inputs_.push_back(unpack(device_.resolve(at, row_bytes_)));
    }
    ExpertJob local = layout.in_slot(job, device_.resolve(slot, layout.bytes));
    local.first = 0;
    const std::uint64_t bytes = static_cast<std::uint64_t>(job.count * output_width_) * sizeof(float);
    auto* out = reinterpret_cast<float*>(device_.resolve(outputs, bytes));
    pass_.compute(cpu::kernels(), kernel_plan_, {&local, 1}, kernel_inputs_, out, output_width_);
}

void FakeDeviceExperts::finish() {
    const std::uint64_t bytes = static_cast<std::uint64_t>(computed_ * output_width_) * sizeof(float);
    stream_->copy_to_host(packed_outputs_->span().first(static_cast<std::size_t>(bytes)), outputs_);
    stream_->record(*done_);
}

EventState FakeDeviceExperts::wait(std::chrono::nanoseconds limit) {
    const EventState state = done_->wait(limit);
    if (state == EventState::Failed && !device_.lost()) {
        try {
            stream_->synchronise();  // a stream keeps its failure until it has been told
        } catch (const Error&) {
        }
    }
    return state;
}

/// A fake's hand-off takes the time of its kernels on the CPU too: that is nobody's cost.
LayerTimes FakeDeviceExperts::times() const {
    return {.compute_seconds = std::chrono::duration<double>(compute_time_).count()};
}

const float* FakeDeviceExperts::output(std::int64_t i) const {
    return reinterpret_cast<const float*>(packed_outputs_->span().data()) + i * output_width_;
}

}  // namespace coterie::engine
