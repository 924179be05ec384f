#include "engine/forward/cuda/prompt_stream.h"

#include <algorithm>

namespace coterie::engine {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

PromptStream::PromptStream(CudaDevice& device, const ExpertCatalog& catalog, LayerRange layers)
    : catalog_(catalog), stream_(device.create_stream()) {
    for (Half& half : halves_) half = {device.create_event(), device.create_event()};
    for (int layer = layers.begin; layer < layers.end; ++layer) {
        const auto& shape = catalog.shapes()[static_cast<std::size_t>(layer)];
        half_bytes_ =
            std::max(half_bytes_, static_cast<std::uint64_t>(shape.experts) * aligned(shape.expert_bytes));
    }
}

bool PromptStream::begin(expert_cache::ExpertCache& cache, std::int32_t index) {
    loan_ = cache.borrow(index, 2 * half_bytes_);
    return loan_.has_value();
}

std::uint64_t PromptStream::bring(int layer, ResidentTable& table, Stream& compute) {
    Half& half = halves_[next_ % 2];
    std::uint64_t place = static_cast<std::uint64_t>(loan_->address()) + (next_ % 2) * half_bytes_;
    std::uint64_t copied = 0;
    for (std::int32_t e = 0; e < static_cast<std::int32_t>(table.host_layer(layer).size()); ++e) {
        if (table.host_layer(layer)[static_cast<std::size_t>(e)] != 0) continue;
        if (copied == 0) stream_->wait_for(*half.free);
        table.edit(layer)[static_cast<std::size_t>(e)] = place;
        std::uint64_t at = place;
        for (const std::span<const std::byte> piece : catalog_.source({layer, e}).pieces) {
            stream_->copy_to_device(DeviceAddress{at}, piece);
            at += piece.size();
        }
        copied += at - place;
        place += aligned(at - place);
    }
    if (copied == 0) return 0;
    stream_->record(*half.filled);
    compute.wait_for(*half.filled);
    table.send_layer(layer, compute);
    return copied;
}

void PromptStream::consumed(Stream& compute) { compute.record(*halves_[next_++ % 2].free); }

}  // namespace coterie::engine
