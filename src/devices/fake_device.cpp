#include "devices/fake_device.h"

#include <fmt/core.h>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "base/error.h"
#include "devices/fake/device_state.h"
#include "devices/fake/stream.h"

namespace coterie {
namespace {

/// Both kinds of memory of a fake device: a range, mapped on demand or at once.
class FakeRange final : public AddressRange {
  public:
    FakeRange(std::shared_ptr<fake::DeviceState> device, std::uint64_t bytes)
        : device_(std::move(device)), bytes_(bytes), address_(device_->memory.reserve(bytes)) {}
    ~FakeRange() override { device_->memory.release(address_); }

    DeviceAddress address() const override { return address_; }
    std::uint64_t bytes() const override { return bytes_; }
    void map(std::uint64_t offset, std::uint64_t bytes) override {
        device_->check_not_lost();
        device_->memory.map(address_, offset, bytes);
    }
    void unmap(std::uint64_t offset, std::uint64_t bytes) override {
        device_->check_not_lost();
        device_->memory.unmap(address_, offset, bytes);
    }

  private:
    std::shared_ptr<fake::DeviceState> device_;
    std::uint64_t bytes_;
    DeviceAddress address_;
};

class FakeAllocation final : public DeviceMemory {
  public:
    FakeAllocation(std::shared_ptr<fake::DeviceState> device, std::uint64_t bytes, std::uint64_t reserved)
        : range_(std::move(device), reserved), bytes_(bytes) {
        range_.map(0, reserved);
    }
    DeviceAddress address() const override { return range_.address(); }
    std::uint64_t bytes() const override { return bytes_; }

  private:
    FakeRange range_;
    std::uint64_t bytes_;
};

class FakePinned final : public PinnedMemory {
  public:
    explicit FakePinned(std::uint64_t bytes) : buffer_(bytes) {}
    std::span<std::byte> span() override { return buffer_.span(); }

  private:
    AlignedBuffer<std::byte> buffer_;
};

}  // namespace

FakeDevice::FakeDevice(std::shared_ptr<fake::DeviceState> state)
    : info_{.name = fmt::format("fake device {}", state->index),
            .index = state->index,
            .memory_bytes = state->spec.memory_bytes},
      state_(std::move(state)) {}

FakeDevice::~FakeDevice() = default;

std::uint64_t FakeDevice::free_bytes() const {
    state_->check_not_lost();
    return state_->memory.free_bytes();
}

bool FakeDevice::lost() const { return state_->timeline.lost(state_->index); }

std::unique_ptr<DeviceMemory> FakeDevice::allocate(std::uint64_t bytes) {
    state_->check_not_lost();
    const auto reserved = checked_align_up(std::max<std::uint64_t>(bytes, 1), mapping_granularity());
    if (!reserved) fail(ErrorCode::OutOfMemory, "fake device {} has no {} bytes", info_.index, bytes);
    return std::make_unique<FakeAllocation>(state_, bytes, *reserved);
}

std::unique_ptr<PinnedMemory> FakeDevice::allocate_pinned(std::uint64_t bytes) {
    state_->check_not_lost();
    return std::make_unique<FakePinned>(bytes);
}

std::unique_ptr<AddressRange> FakeDevice::reserve(std::uint64_t bytes) {
    state_->check_not_lost();
    return std::make_unique<FakeRange>(state_, bytes);
}

std::uint64_t FakeDevice::mapping_granularity() const { return state_->memory.granularity(); }

std::unique_ptr<Stream> FakeDevice::create_stream() { return create_fake_stream(); }

std::unique_ptr<Event> FakeDevice::create_event() {
    state_->check_not_lost();
    return std::make_unique<fake::EventOfDevice>(state_);
}

std::unique_ptr<FakeStream> FakeDevice::create_fake_stream() {
    state_->check_not_lost();
    return std::make_unique<fake::StreamOfDevice>(state_);
}

std::byte* FakeDevice::resolve(DeviceAddress address, std::uint64_t bytes) const {
    return state_->memory.resolve(address, bytes);
}

void FakeDevice::refuse_allocation(int number) { state_->memory.refuse(number); }
void FakeDevice::limit_memory(std::uint64_t bytes) { state_->memory.limit(bytes); }

void FakeDevice::refuse_copy(int number) {
    const std::lock_guard lock(state_->faults_mutex);
    state_->faults.refuse = number;
}

void FakeDevice::refuse_call(int number) {
    const std::lock_guard lock(state_->faults_mutex);
    state_->faults.refuse_call = number;
}

void FakeDevice::fail_copy(int number) {
    const std::lock_guard lock(state_->faults_mutex);
    state_->faults.fail = number;
}

void FakeDevice::slow_copies(double factor) {
    const std::lock_guard lock(state_->faults_mutex);
    state_->faults.slowness = factor;
}

void FakeDevice::lose() { state_->timeline.lose(state_->index); }

void FakeDevice::lose_at_copy(int number) {
    const std::lock_guard lock(state_->faults_mutex);
    state_->faults.lose = number;
}

FakeMachine::FakeMachine(Clock& clock, std::vector<FakeDeviceSpec> devices, double ram_rate)
    : clock_(clock), timeline_(std::make_unique<fake::Timeline>(clock, ram_rate)) {
    for (const FakeDeviceSpec& spec : devices) {
        auto state = std::make_shared<fake::DeviceState>(size(), spec, *timeline_);
        devices_.push_back(std::unique_ptr<FakeDevice>(new FakeDevice(std::move(state))));
    }
}

FakeMachine::~FakeMachine() = default;

void FakeMachine::pump() { timeline_->pump(); }

void FakeMachine::read_ram(std::uint64_t bytes, double rate) {
    const fake::FlowId flow = timeline_->begin_flow(static_cast<double>(bytes), rate);
    timeline_->wait_flow(flow);
    timeline_->end_flow(flow);
}

FakeMachine::CpuReading::CpuReading(FakeMachine& machine, double rate)
    : timeline_(*machine.timeline_), flow_(timeline_.begin_flow(fake::Flows::kEndless, rate)) {}

FakeMachine::CpuReading::~CpuReading() { timeline_.end_flow(flow_); }

}  // namespace coterie
