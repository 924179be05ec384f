#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "devices/device.h"

namespace coterie::fake {

/// The memory of one fake device: stretches of the host's address space, of which only what is mapped can be
/// reached. A device address is the host's with the device's number in its upper bits, so that neither the
/// host nor another device can use it by mistake. Thread-safe.
class Memory {
  public:
    Memory(int device, std::uint64_t capacity, std::uint64_t granularity);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::uint64_t capacity() const { return capacity_; }
    std::uint64_t granularity() const { return granularity_; }
    std::uint64_t free_bytes() const;

    DeviceAddress reserve(std::uint64_t bytes);
    void release(DeviceAddress range);
    /// Offsets and sizes in bytes; content is poison then. Throws OutOfMemory where it does not fit.
    void map(DeviceAddress range, std::uint64_t offset, std::uint64_t bytes);
    void unmap(DeviceAddress range, std::uint64_t offset, std::uint64_t bytes);

    /// Throws Internal unless all bytes are mapped.
    std::byte* resolve(DeviceAddress address, std::uint64_t bytes) const;

    void refuse(int number);
    void limit(std::uint64_t bytes);

  private:
    struct Range {
        std::uint64_t bytes;
        std::vector<bool> mapped;  ///< by granule
    };
    std::uint64_t host(DeviceAddress address) const;
    Range& range_at(DeviceAddress address);
    void check_may_map(std::uint64_t bytes);
    void mark(Range& range, std::uint64_t offset, std::uint64_t bytes, bool mapped);

    const int device_;
    const std::uint64_t capacity_;
    const std::uint64_t granularity_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, Range> ranges_;  ///< by host address
    std::uint64_t used_ = 0;
    std::uint64_t limit_;
    int refuse_ = 0;  ///< counts down; the call that reaches 0 is refused
};

}  // namespace coterie::fake
