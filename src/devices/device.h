#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What the engine asks of an accelerator: memory, in-order streams, events and copies, and nothing of
/// tensors, models or the expert cache. Kernels take a stream of their own backend. A real GPU stands behind
/// it, or in tests a fake with limited memory and simulated copy times, so that everything that decides runs
/// without a GPU.
///
/// A failed call throws `Error`: OutOfMemory from the allocating calls, Internal from all others. Work that
/// fails after its call has returned fails its stream: what is queued behind it is skipped, and every event
/// recorded behind it ends as Failed, until `Stream::synchronise` throws, once, and clears the stream.
namespace coterie {

/// An address in a device's memory. The host never reads or writes through it; offsets into an allocation are
/// valid.
enum class DeviceAddress : std::uint64_t {};

inline DeviceAddress operator+(DeviceAddress address, std::uint64_t bytes) {
    return DeviceAddress{static_cast<std::uint64_t>(address) + bytes};
}

struct DeviceInfo {
    std::string name;  ///< as its maker calls it
    int index = 0;     ///< for `open_device` and `-dev`
    std::uint64_t memory_bytes = 0;
    std::string uuid = {};  ///< of this one card, 32 hexadecimal digits; empty where it has none
};

/// A piece of device memory, given back when this goes. No stream may still use it then.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    virtual DeviceAddress address() const = 0;
    virtual std::uint64_t bytes() const = 0;
};

/// A range of addresses that pieces of memory are mapped into and taken out of, so that memory can move
/// between uses while addresses stay. Only what is mapped takes up memory of the device. Offsets and sizes
/// are multiples of the device's `mapping_granularity`. Given back when this goes, with all that is mapped.
class AddressRange {
  public:
    virtual ~AddressRange() = default;
    virtual DeviceAddress address() const = 0;
    virtual std::uint64_t bytes() const = 0;

    /// Backs a piece, none of which is mapped, with memory of undefined content. Changes nothing where it
    /// throws.
    virtual void map(std::uint64_t offset, std::uint64_t bytes) = 0;
    /// Takes the memory from a piece, all of which is mapped. No stream may still use it.
    virtual void unmap(std::uint64_t offset, std::uint64_t bytes) = 0;
};

/// Page-locked host memory: the only memory from which a copy runs beside the host. Given back when this
/// goes.
class PinnedMemory {
  public:
    virtual ~PinnedMemory() = default;
    virtual std::span<std::byte> span() = 0;
};

enum class EventState {
    Pending,
    Reached,
    Failed,  ///< something queued before the event failed, or the device is lost
};

/// A point in a stream, as of the last `Stream::record`. One that was never recorded counts as reached.
class Event {
  public:
    virtual ~Event() = default;
    /// Never blocks or throws.
    virtual EventState state() const = 0;
    /// Blocks the calling thread until the state is no longer Pending, at most for `limit`; gives the state.
    virtual EventState wait(std::chrono::nanoseconds limit) const = 0;
    /// Time on the device's clock from `earlier`, an event of the same device, to this one; both have been
    /// recorded and reached. Nothing where the device does not time its events.
    virtual std::optional<std::chrono::nanoseconds> since(const Event& earlier) const {
        static_cast<void>(earlier);
        return std::nullopt;
    }

    bool reached() const { return state() == EventState::Reached; }
};

/// A queue of work that runs in the order of the calls, beside the host and other streams. The calls return
/// at once; memory that they name must stay as it is until the work is done. One thread at a time. What a
/// stream has not done when it goes may fail.
class Stream {
  public:
    virtual ~Stream() = default;

    /// Copies of host memory that is not pinned may hold up the caller.
    virtual void copy_to_device(DeviceAddress to, std::span<const std::byte> from) = 0;
    virtual void copy_to_host(std::span<std::byte> to, DeviceAddress from) = 0;
    virtual void copy_on_device(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) = 0;
    virtual void fill(DeviceAddress to, std::uint64_t bytes, std::byte value) = 0;

    /// `event` is reached when everything queued before is done.
    virtual void record(Event& event) = 0;
    /// What is queued after this starts only when `event`, of any stream of this device, is reached; if it
    /// failed, this stream fails.
    virtual void wait_for(const Event& event) = 0;
    /// Blocks the calling thread until the queue is empty. Throws where work of this stream failed since the
    /// last call.
    virtual void synchronise() = 0;
};

/// One accelerator. Thread-safe. Streams, events and memory must be gone before it goes.
class Device {
  public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;

    /// Asked anew at each call: other programs share the device.
    virtual std::uint64_t free_bytes() const = 0;

    /// True once the device does not answer any more; all calls but this one and destructors then throw.
    virtual bool lost() const = 0;

    /// At least 256-byte aligned; the content is undefined.
    virtual std::unique_ptr<DeviceMemory> allocate(std::uint64_t bytes) = 0;
    virtual std::unique_ptr<PinnedMemory> allocate_pinned(std::uint64_t bytes) = 0;

    /// Addresses only; `bytes` is a multiple of `mapping_granularity`.
    virtual std::unique_ptr<AddressRange> reserve(std::uint64_t bytes) = 0;
    /// A power of two, at least 4096.
    virtual std::uint64_t mapping_granularity() const = 0;

    virtual std::unique_ptr<Stream> create_stream() = 0;
    virtual std::unique_ptr<Event> create_event() = 0;
};

struct DeviceList {
    std::vector<DeviceInfo> devices;
    std::string note;  ///< one line for the user where no backend is built in, else empty
};

DeviceList list_devices();

/// `index` is one of `list_devices()`. Throws Unsupported where no backend is built in.
std::unique_ptr<Device> open_device(int index);

}  // namespace coterie
