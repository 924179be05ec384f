#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "devices/fake/device_state.h"
#include "devices/fake_device.h"

namespace coterie::fake {

class StreamOfDevice final : public FakeStream {
  public:
    explicit StreamOfDevice(std::shared_ptr<DeviceState> device);
    ~StreamOfDevice() override;

    void copy_to_device(DeviceAddress to, std::span<const std::byte> from) override;
    void copy_to_host(std::span<std::byte> to, DeviceAddress from) override;
    void copy_on_device(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override;
    void fill(DeviceAddress to, std::uint64_t bytes, std::byte value) override;
    void launch(std::function<void()> kernel, Nanoseconds duration) override;
    void record(Event& event) override;
    void wait_for(const Event& event) override;
    void synchronise() override;

  private:
    Nanoseconds memory_time(std::uint64_t bytes) const;

    std::shared_ptr<DeviceState> device_;
    std::shared_ptr<Queue> queue_;
};

class EventOfDevice final : public Event {
  public:
    explicit EventOfDevice(std::shared_ptr<DeviceState> device)
        : device_(std::move(device)), record_(std::make_shared<EventRecord>()) {}

    EventState state() const override { return device_->timeline.state(*record_); }
    EventState wait(std::chrono::nanoseconds limit) const override {
        return device_->timeline.wait(*record_, limit);
    }
    std::optional<std::chrono::nanoseconds> since(const Event& earlier) const override;
    const std::shared_ptr<EventRecord>& shared() const { return record_; }

  private:
    std::shared_ptr<DeviceState> device_;
    std::shared_ptr<EventRecord> record_;
};

}  // namespace coterie::fake
