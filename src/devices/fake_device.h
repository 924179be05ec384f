#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "devices/device.h"
#include "devices/fake_spec.h"

namespace coterie {

namespace fake {
struct DeviceState;
class Timeline;
}  // namespace fake

class FakeMachine;

/// A stream of a fake device: also runs kernels, which are functions of the host.
class FakeStream : public Stream {
  public:
    /// Runs `kernel` in stream order; its effects appear `duration` after everything before it is done. It
    /// may call `FakeDevice::resolve`, nothing else of the machine. What it throws fails the stream.
    virtual void launch(std::function<void()> kernel, Nanoseconds duration) = 0;
};

/// An accelerator that exists only as memory of the host and a model of time.
///
/// Copies and kernels take effect when they end by the machine's clock, not before: a source that is
/// overwritten too early gives wrong bytes, as does a read that does not wait (the target of a copy under way
/// holds poison). What is not mapped cannot be read at all, and memory handed out holds poison. So a test
/// that compares bytes sees every mistake in the order of things.
class FakeDevice final : public Device {
  public:
    static constexpr std::byte kPoison{0xA5};

    ~FakeDevice() override;

    const DeviceInfo& info() const override { return info_; }
    std::uint64_t free_bytes() const override;
    bool lost() const override;
    std::unique_ptr<DeviceMemory> allocate(std::uint64_t bytes) override;
    std::unique_ptr<PinnedMemory> allocate_pinned(std::uint64_t bytes) override;
    std::unique_ptr<AddressRange> reserve(std::uint64_t bytes) override;
    std::uint64_t mapping_granularity() const override;
    std::unique_ptr<Stream> create_stream() override;
    std::unique_ptr<Event> create_event() override;
    std::unique_ptr<FakeStream> create_fake_stream();

    /// Where a kernel finds `bytes` bytes from `address` on. Throws Internal where not all of them are mapped
    /// memory of this device.
    std::byte* resolve(DeviceAddress address, std::uint64_t bytes) const;

    // Faults. Numbers count from this call on: 1 is the next.
    void refuse_allocation(int number);      ///< one `allocate` or `map` throws OutOfMemory
    void limit_memory(std::uint64_t bytes);  ///< all that would exceed this throw OutOfMemory
    void refuse_copy(int number);            ///< the call of one copy over the link throws
    void refuse_call(int number);            ///< of any stream of the device, one call of any kind throws
    void fail_copy(int number);              ///< one copy over the link fails while it runs
    void slow_copies(double factor);         ///< from now on; 1 is normal
    void lose();                             ///< all that is queued fails
    void lose_at_copy(int number);           ///< the device is lost while this copy runs

  private:
    friend class FakeMachine;
    explicit FakeDevice(std::shared_ptr<fake::DeviceState> state);

    DeviceInfo info_;
    std::shared_ptr<fake::DeviceState> state_;
};

/// Fake devices of one host and the RAM that they share with its CPU.
///
/// Each device has one copy engine a direction. All copies under way over links and all declared reading of
/// the CPU share the rate of the RAM: each gets an equal part, or as much as it can use where that is less.
/// Thread-safe. Nothing happens by itself: a state, wait or synchronise of anything of the machine, or
/// `pump`, brings it up to the present.
class FakeMachine {
  public:
    /// `ram_rate` in bytes per second, 0 for no limit. `clock` outlives the machine. With a `SteadyClock`
    /// waits take real time.
    FakeMachine(Clock& clock, std::vector<FakeDeviceSpec> devices, double ram_rate);
    ~FakeMachine();
    FakeMachine(const FakeMachine&) = delete;
    FakeMachine& operator=(const FakeMachine&) = delete;

    int size() const { return static_cast<int>(devices_.size()); }
    FakeDevice& device(int index) { return *devices_[static_cast<std::size_t>(index)]; }
    Clock& clock() { return clock_; }

    void pump();

    /// Passes the time that the CPU takes to read `bytes` from RAM at no more than `rate` beside what else
    /// runs now.
    void read_ram(std::uint64_t bytes, double rate);

    /// The CPU reads RAM at no more than `rate` until this goes.
    class CpuReading {
      public:
        CpuReading(FakeMachine& machine, double rate);
        ~CpuReading();
        CpuReading(const CpuReading&) = delete;
        CpuReading& operator=(const CpuReading&) = delete;

      private:
        fake::Timeline& timeline_;
        std::uint64_t flow_;
    };

  private:
    Clock& clock_;
    std::unique_ptr<fake::Timeline> timeline_;
    std::vector<std::unique_ptr<FakeDevice>> devices_;
};

}  // namespace coterie
