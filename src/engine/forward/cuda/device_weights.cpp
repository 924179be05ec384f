#include "engine/forward/cuda/device_weights.h"

#include <algorithm>

namespace coterie::engine {
namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kStagingBytes = std::uint64_t{16} << 20;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Copies from pageable memory through two pinned buffers, one filled while the other is on its way.
class Uploader {
  public:
    explicit Uploader(CudaDevice& device) : stream_(device.create_stream()) {
        for (Buffer& buffer : buffers_)
            buffer = {device.allocate_pinned(kStagingBytes), device.create_event()};
    }
    ~Uploader() { stream_->synchronise(); }

    void copy(std::byte* to, std::span<const std::byte> from) {
        for (std::uint64_t at = 0; at < from.size(); at += kStagingBytes) {
            Buffer& buffer = buffers_[next_++ % 2];
            buffer.free->wait(std::chrono::hours(1));
            const auto piece = from.subspan(at, std::min<std::uint64_t>(kStagingBytes, from.size() - at));
            std::copy(piece.begin(), piece.end(), buffer.memory->span().begin());
            stream_->copy_to_device(device_address(to + at), buffer.memory->span().first(piece.size()));
            stream_->record(*buffer.free);
        }
    }

  private:
    struct Buffer {
        std::unique_ptr<PinnedMemory> memory;
        std::unique_ptr<Event> free;
    };
    std::unique_ptr<Stream> stream_;
    Buffer buffers_[2];
    std::size_t next_ = 0;
};

}  // namespace

DeviceWeights::DeviceWeights(CudaDevice& device, const WeightList& list) : arena_(device) {
    std::uint64_t total = 0;
    for (const models::Matrix* matrix : list.matrices) {
        if (matrices_.emplace(matrix->data, nullptr).second)
            total += aligned(static_cast<std::uint64_t>(matrix->bytes()));
    }
    for (const models::Vector* vector : list.vectors) {
        if (vectors_.emplace(vector->data(), nullptr).second)
            total += aligned(vector->size() * sizeof(float));
    }
    auto* next = arena_.take<std::byte>(static_cast<std::int64_t>(total));
    Uploader uploader(device);
    const auto place = [&](std::span<const std::byte> bytes) {
        uploader.copy(next, bytes);
        const std::byte* at = next;
        next += aligned(bytes.size());
        return at;
    };
    for (const models::Matrix* matrix : list.matrices) {
        const std::byte*& at = matrices_.at(matrix->data);
        if (at == nullptr) at = place({matrix->data, static_cast<std::size_t>(matrix->bytes())});
    }
    for (const models::Vector* vector : list.vectors) {
        const float*& at = vectors_.at(vector->data());
        if (at == nullptr) at = reinterpret_cast<const float*>(place(std::as_bytes(std::span(*vector))));
    }
}

}  // namespace coterie::engine
