#include "devices/fake/stream.h"

#include <cstring>

#include "base/error.h"

namespace coterie::fake {
namespace {

void poison(std::byte* at, std::uint64_t bytes) {
    std::memset(at, std::to_integer<int>(FakeDevice::kPoison), bytes);
}

const EventOfDevice& of_fake(const Event& event) {
    const auto* fake = dynamic_cast<const EventOfDevice*>(&event);
    COTERIE_CHECK(fake != nullptr);
    return *fake;
}

}  // namespace

void DeviceState::check_not_lost() {
    if (timeline.lost(index)) fail(ErrorCode::Internal, "fake device {} is lost", index);
}

void DeviceState::take_call() {
    check_not_lost();
    const std::lock_guard lock(faults_mutex);
    if (faults.refuse_call > 0 && --faults.refuse_call == 0) {
        fail(ErrorCode::Internal, "fake device {} refuses a call, as it was told to", index);
    }
}

Operation DeviceState::link_copy(int engine, std::uint64_t bytes) {
    const std::lock_guard lock(faults_mutex);
    if (faults.refuse > 0 && --faults.refuse == 0) {
        fail(ErrorCode::Internal, "fake device {} refuses a copy, as it was told to", index);
    }
    Operation copy{.kind = Operation::Kind::Copy};
    if (faults.fail > 0 && --faults.fail == 0) copy.fault = Operation::Fault::Fails;
    if (faults.lose > 0 && --faults.lose == 0) copy.fault = Operation::Fault::LosesDevice;
    copy.engine = engine;
    copy.duration = std::chrono::duration_cast<Nanoseconds>(spec.latency * faults.slowness);
    copy.bytes = static_cast<double>(bytes);
    copy.rate = spec.link_rate / faults.slowness;
    return copy;
}

StreamOfDevice::StreamOfDevice(std::shared_ptr<DeviceState> device)
    : device_(std::move(device)), queue_(device_->timeline.add_queue(device_->index)) {}

StreamOfDevice::~StreamOfDevice() { device_->timeline.remove_queue(queue_); }

void StreamOfDevice::copy_to_device(DeviceAddress to, std::span<const std::byte> from) {
    device_->take_call();
    Operation copy = device_->link_copy(device_->to_device, from.size());
    copy.begin = [this, to, bytes = from.size()] { poison(device_->memory.resolve(to, bytes), bytes); };
    copy.effect = [this, to, from] {
        std::memcpy(device_->memory.resolve(to, from.size()), from.data(), from.size());
    };
    device_->timeline.enqueue(*queue_, std::move(copy));
}

void StreamOfDevice::copy_to_host(std::span<std::byte> to, DeviceAddress from) {
    device_->take_call();
    Operation copy = device_->link_copy(device_->to_host, to.size());
    copy.begin = [to] { poison(to.data(), to.size()); };
    copy.effect = [this, to, from] {
        std::memcpy(to.data(), device_->memory.resolve(from, to.size()), to.size());
    };
    device_->timeline.enqueue(*queue_, std::move(copy));
}

void StreamOfDevice::copy_on_device(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
    device_->take_call();
    Operation copy{.duration = memory_time(2 * bytes)};
    copy.begin = [this, to, bytes] { poison(device_->memory.resolve(to, bytes), bytes); };
    copy.effect = [this, to, from, bytes] {
        std::memcpy(device_->memory.resolve(to, bytes), device_->memory.resolve(from, bytes), bytes);
    };
    device_->timeline.enqueue(*queue_, std::move(copy));
}

void StreamOfDevice::fill(DeviceAddress to, std::uint64_t bytes, std::byte value) {
    device_->take_call();
    Operation work{.duration = memory_time(bytes)};
    work.effect = [this, to, bytes, value] {
        std::memset(device_->memory.resolve(to, bytes), std::to_integer<int>(value), bytes);
    };
    device_->timeline.enqueue(*queue_, std::move(work));
}

void StreamOfDevice::launch(std::function<void()> kernel, Nanoseconds duration) {
    device_->take_call();
    Operation work{.duration = duration};
    work.effect = std::move(kernel);
    device_->timeline.enqueue(*queue_, std::move(work));
}

std::optional<std::chrono::nanoseconds> EventOfDevice::since(const Event& earlier) const {
    fake::Timeline& timeline = device_->timeline;
    return timeline.passed_at(*record_) - timeline.passed_at(*of_fake(earlier).shared());
}

void StreamOfDevice::record(Event& event) {
    device_->take_call();
    device_->timeline.record(*queue_, of_fake(event).shared());
}

void StreamOfDevice::wait_for(const Event& event) {
    device_->take_call();
    device_->timeline.wait_for(*queue_, of_fake(event).shared());
}

void StreamOfDevice::synchronise() {
    const std::string failure = device_->timeline.drain(*queue_);
    device_->check_not_lost();
    if (!failure.empty()) fail(ErrorCode::Internal, "fake device {}: {}", device_->index, failure);
}

Nanoseconds StreamOfDevice::memory_time(std::uint64_t bytes) const {
    if (device_->spec.memory_rate <= 0) return Nanoseconds(0);
    return Nanoseconds(
        static_cast<Nanoseconds::rep>(static_cast<double>(bytes) / device_->spec.memory_rate * 1e9));
}

}  // namespace coterie::fake
