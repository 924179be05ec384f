#pragma once

#include <memory>
#include <vector>

#include "devices/device.h"

/// A device whose calls do nothing and take no time, so that what is measured is the caller's own work.
namespace coterie::bench {

class NullEvent final : public Event {
  public:
    EventState state() const override { return EventState::Reached; }
    EventState wait(std::chrono::nanoseconds) const override { return EventState::Reached; }
};

class NullStream final : public Stream {
  public:
    void copy_to_device(DeviceAddress, std::span<const std::byte>) override {}
    void copy_to_host(std::span<std::byte>, DeviceAddress) override {}
    void copy_on_device(DeviceAddress, DeviceAddress, std::uint64_t) override {}
    void fill(DeviceAddress, std::uint64_t, std::byte) override {}
    void record(Event&) override {}
    void wait_for(const Event&) override {}
    void synchronise() override {}
};

class NullPinned final : public PinnedMemory {
  public:
    explicit NullPinned(std::uint64_t bytes) : bytes_(bytes) {}
    std::span<std::byte> span() override { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

/// Memory and ranges alike: addresses that nobody reads.
class NullRange final : public AddressRange, public DeviceMemory {
  public:
    explicit NullRange(std::uint64_t bytes) : bytes_(bytes) {}
    DeviceAddress address() const override { return DeviceAddress{std::uint64_t{1} << 40}; }
    std::uint64_t bytes() const override { return bytes_; }
    void map(std::uint64_t, std::uint64_t) override {}
    void unmap(std::uint64_t, std::uint64_t) override {}

  private:
    std::uint64_t bytes_;
};

class NullDevice final : public Device {
  public:
    const DeviceInfo& info() const override { return info_; }
    std::uint64_t free_bytes() const override { return info_.memory_bytes; }
    bool lost() const override { return false; }
    std::unique_ptr<DeviceMemory> allocate(std::uint64_t bytes) override {
        return std::make_unique<NullRange>(bytes);
    }
    std::unique_ptr<PinnedMemory> allocate_pinned(std::uint64_t bytes) override {
        return std::make_unique<NullPinned>(bytes);
    }
    std::unique_ptr<AddressRange> reserve(std::uint64_t bytes) override {
        return std::make_unique<NullRange>(bytes);
    }
    std::uint64_t mapping_granularity() const override { return 4096; }
    std::unique_ptr<Stream> create_stream() override { return std::make_unique<NullStream>(); }
    std::unique_ptr<Event> create_event() override { return std::make_unique<NullEvent>(); }

  private:
    DeviceInfo info_{.name = "null", .index = 0, .memory_bytes = std::uint64_t{1} << 40};
};

}  // namespace coterie::bench
