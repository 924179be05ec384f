#include "engine/forward/cuda/device_pages.h"

#include <algorithm>

#include "base/error.h"
#include "engine/forward/cuda/device_arena.h"

namespace coterie::engine {

std::byte* DevicePages::add_piece(CudaDevice& device, std::uint64_t end) {
    const std::uint64_t begin = pieces_.empty() ? 0 : pieces_.back().end;
    COTERIE_CHECK(begin < end && end <= page_bytes_);
    pieces_.push_back({begin, end, device.allocate((end - begin) * pages_), device.create_stream()});
    return pieces_.back().base();
}

DevicePages::Place DevicePages::place_of(const std::byte* address, std::uint64_t bytes) const {
    const auto offset = static_cast<std::uint64_t>(address - base());
    const std::uint64_t page = offset / page_bytes_;
    const std::uint64_t at = offset % page_bytes_;
    for (const Piece& piece : pieces_) {
        if (at < piece.begin || at + bytes > piece.end) continue;
        return {piece, device_address(piece.base() + page * (piece.end - piece.begin) + at - piece.begin)};
    }
    fail(ErrorCode::Internal, "{} bytes at {} of a page lie on no single GPU", bytes, at);
}

void DevicePages::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    const Place target = place_of(to, bytes);
    target.piece.stream->copy_on_device(target.address, place_of(from, bytes).address, bytes);
    target.piece.stream->synchronise();
}

void DevicePages::read(std::span<std::byte> to, const std::byte* from) {
    const Place source = place_of(from, to.size());
    source.piece.stream->copy_to_host(to, source.address);
    source.piece.stream->synchronise();
}

void DevicePages::write(std::byte* to, std::span<const std::byte> from) {
    const Place target = place_of(to, from.size());
    target.piece.stream->copy_to_device(target.address, from);
    target.piece.stream->synchronise();
}

}  // namespace coterie::engine
