#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "kv_cache/page_memory.h"

namespace coterie::engine {

/// A KV cache's pages in the memory of devices. Each has its piece of every page, the one that its layers
/// use; the pieces follow one another. Addresses are offsets into all pages as if they were in one place, of
/// which devices never hear.
class DevicePages final : public PageMemory {
  public:
    DevicePages(std::uint64_t page_bytes, std::uint64_t pages) : page_bytes_(page_bytes), pages_(pages) {}

    /// Takes memory for the bytes of every page from the last piece's end to `end`. Returns where they start
    /// on the device; a page's are `end` less the last end apart. Throws OutOfMemory.
    std::byte* add_piece(CudaDevice& device, std::uint64_t end);

    std::byte* base() const override { return pieces_.front().base(); }
    std::uint64_t bytes() const override { return page_bytes_ * pages_; }
    void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) override;
    void read(std::span<std::byte> to, const std::byte* from) override;
    void write(std::byte* to, std::span<const std::byte> from) override;

  private:
    struct Piece {
        std::uint64_t begin;  ///< in a page
        std::uint64_t end;
        std::unique_ptr<DeviceMemory> memory;
        std::unique_ptr<Stream> stream;
        std::byte* base() const {
            return reinterpret_cast<std::byte*>(static_cast<std::uint64_t>(memory->address()));
        }
    };
    struct Place {
        const Piece& piece;
        DeviceAddress address;
    };
    Place place_of(const std::byte* address, std::uint64_t bytes) const;

    const std::uint64_t page_bytes_;
    const std::uint64_t pages_;
    std::vector<Piece> pieces_;
};

}  // namespace coterie::engine
