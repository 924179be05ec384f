#include "devices/fake/memory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#include "base/error.h"
#include "devices/fake_device.h"

namespace coterie::fake {
namespace {

// User-space addresses have 47 bits.
constexpr int kDeviceShift = 48;
constexpr std::uint64_t kMark = std::uint64_t{1} << 62;
constexpr std::uint64_t kHostMask = (std::uint64_t{1} << kDeviceShift) - 1;

std::byte* pointer(std::uint64_t host) { return reinterpret_cast<std::byte*>(host); }

void protect(std::uint64_t host, std::uint64_t bytes, int protection) {
    if (mprotect(pointer(host), bytes, protection) != 0) {
        fail(ErrorCode::OutOfMemory, "the system refuses {} bytes for a fake device", bytes);
    }
}

}  // namespace

Memory::Memory(int device, std::uint64_t capacity, std::uint64_t granularity)
    : device_(device), capacity_(capacity), granularity_(granularity), limit_(capacity) {
    COTERIE_CHECK(granularity >= 4096 && (granularity & (granularity - 1)) == 0);
}

Memory::~Memory() {
    for (const auto& [host, range] : ranges_) munmap(pointer(host), range.bytes);
}

std::uint64_t Memory::free_bytes() const {
    const std::lock_guard lock(mutex_);
    return limit_ > used_ ? limit_ - used_ : 0;
}

DeviceAddress Memory::reserve(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    COTERIE_CHECK(bytes > 0 && bytes % granularity_ == 0);
    void* host = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (host == MAP_FAILED) {
        fail(ErrorCode::OutOfMemory, "cannot reserve {} bytes of addresses on fake device {}", bytes,
             device_);
    }
    const auto address = reinterpret_cast<std::uint64_t>(host);
    ranges_.emplace(address, Range{.bytes = bytes, .mapped = std::vector<bool>(bytes / granularity_)});
    return DeviceAddress{kMark | static_cast<std::uint64_t>(device_) << kDeviceShift | address};
}

void Memory::release(DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    const Range& range = range_at(address);
    const auto mapped = std::count(range.mapped.begin(), range.mapped.end(), true);
    used_ -= static_cast<std::uint64_t>(mapped) * granularity_;
    munmap(pointer(host(address)), range.bytes);
    ranges_.erase(host(address));
}

void Memory::map(DeviceAddress address, std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    Range& range = range_at(address);
    check_may_map(bytes);
    const std::uint64_t begin = host(address) + offset;
    protect(begin, bytes, PROT_READ | PROT_WRITE);
    mark(range, offset, bytes, true);
    std::memset(pointer(begin), std::to_integer<int>(FakeDevice::kPoison), bytes);
    used_ += bytes;
}

void Memory::unmap(DeviceAddress address, std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    mark(range_at(address), offset, bytes, false);
    const std::uint64_t begin = host(address) + offset;
    madvise(pointer(begin), bytes, MADV_DONTNEED);
    protect(begin, bytes, PROT_NONE);
    used_ -= bytes;
}

std::byte* Memory::resolve(DeviceAddress address, std::uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t begin = host(address);
    auto next = ranges_.upper_bound(begin);
    COTERIE_CHECK(next != ranges_.begin());
    const auto& [base, range] = *--next;
    const std::uint64_t offset = begin - base;
    COTERIE_CHECK(offset <= range.bytes && bytes <= range.bytes - offset);
    for (std::uint64_t at = offset / granularity_; at * granularity_ < offset + bytes; ++at) {
        COTERIE_CHECK(range.mapped[at]);
    }
    return pointer(begin);
}

void Memory::refuse(int number) {
    const std::lock_guard lock(mutex_);
    refuse_ = number;
}

void Memory::limit(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = std::min(bytes, capacity_);
}

std::uint64_t Memory::host(DeviceAddress address) const {
    const auto value = static_cast<std::uint64_t>(address);
    COTERIE_CHECK(value >> kDeviceShift == (kMark >> kDeviceShift | static_cast<std::uint64_t>(device_)));
    return value & kHostMask;
}

Memory::Range& Memory::range_at(DeviceAddress address) {
    const auto found = ranges_.find(host(address));
    COTERIE_CHECK(found != ranges_.end());
    return found->second;
}

void Memory::check_may_map(std::uint64_t bytes) {
    if (refuse_ > 0 && --refuse_ == 0) {
        fail(ErrorCode::OutOfMemory, "fake device {} refuses {} bytes, as it was told to", device_, bytes);
    }
    const std::uint64_t free = limit_ > used_ ? limit_ - used_ : 0;
    if (bytes > free) {
        fail(ErrorCode::OutOfMemory, "fake device {} has {} bytes free, {} are asked for", device_, free,
             bytes);
    }
}

void Memory::mark(Range& range, std::uint64_t offset, std::uint64_t bytes, bool mapped) {
    COTERIE_CHECK(offset % granularity_ == 0 && bytes % granularity_ == 0);
    COTERIE_CHECK(offset <= range.bytes && bytes <= range.bytes - offset);
    for (std::uint64_t at = offset / granularity_; at < (offset + bytes) / granularity_; ++at) {
        COTERIE_CHECK(range.mapped[at] != mapped);
        range.mapped[at] = mapped;
    }
}

}  // namespace coterie::fake
