#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace coterie {

/// The memory behind a pool of pages, of the host or of a device. A device's addresses are only handed to
/// what runs there; whoever wants bytes of a page on the host asks for them here. Calls return when the bytes
/// have moved.
class PageMemory {
  public:
    virtual ~PageMemory() = default;
    virtual std::byte* base() const = 0;
    virtual std::uint64_t bytes() const = 0;

    virtual void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) = 0;
    virtual void read(std::span<std::byte> to, const std::byte* from) = 0;
    virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
};

/// Host memory, reserved at once and backed as pages are first used. Throws OutOfMemory where it cannot be
/// reserved.
std::unique_ptr<PageMemory> make_host_pages(std::uint64_t bytes);

}  // namespace coterie
