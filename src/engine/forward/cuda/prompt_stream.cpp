#include "engine/forward/cuda/prompt_stream.h"

#include <algorithm>

namespace coterie::engine {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

PromptStream::PromptStream(CudaDevice& device, const ExpertCatalog& catalog, LayerRange layers)
    : catalog_(catalog),
      layers_(layers),
      stream_(device.create_stream()),
      plan_(static_cast<std::size_t>(catalog.layers())) {
    std::size_t turn = 0;
    for (int layer = layers.begin; layer < layers.end; ++layer) {
        const auto& shape = catalog.shapes()[static_cast<std::size_t>(layer)];
        if (shape.experts == 0) continue;
        at(layer).half = turn++ % halves_.size();
        at(layer).missing.reserve(static_cast<std::size_t>(shape.experts));
        half_bytes_ =
            std::max(half_bytes_, static_cast<std::uint64_t>(shape.experts) * aligned(shape.expert_bytes));
    }
    for (std::size_t i = 0; i < halves_.size(); ++i)
        halves_[i] = {i * half_bytes_, device.create_event(), device.create_event()};
}

bool PromptStream::begin(expert_cache::ExpertCache& cache, std::int32_t index) {
    loan_ = cache.borrow(index, halves_.size() * half_bytes_);
    return loan_.has_value();
}

void PromptStream::name_places(ResidentTable& table, Stream& compute) {
    for (int layer = layers_.begin; layer < layers_.end; ++layer) {
        std::vector<Missing>& missing = at(layer).missing;
        missing.clear();
        DeviceAddress place = loan_->address() + half_of(layer).offset;
        const std::uint64_t bytes = aligned(catalog_.shapes()[static_cast<std::size_t>(layer)].expert_bytes);
        std::int32_t expert = 0;
        for (std::uint64_t& address : table.edit(layer)) {
            if (address == 0) {
                address = static_cast<std::uint64_t>(place);
                missing.push_back({expert, place});
                place = place + bytes;
            }
            ++expert;
        }
    }
    table.send(compute);
}

std::uint64_t PromptStream::bring(int layer, Stream& compute) {
    const std::vector<Missing>& missing = at(layer).missing;
    if (missing.empty()) return 0;
    std::uint64_t copied = 0;
    stream_->wait_for(*half_of(layer).free);
    for (const auto [expert, place] : missing) {
        std::uint64_t at = 0;
        for (const std::span<const std::byte> piece : catalog_.source({layer, expert}).pieces) {
            stream_->copy_to_device(place + at, piece);
            at += piece.size();
        }
        copied += at;
    }
    stream_->record(*half_of(layer).filled);
    compute.wait_for(*half_of(layer).filled);
    return copied;
}

void PromptStream::consumed(int layer, Stream& compute) { compute.record(*half_of(layer).free); }

}  // namespace coterie::engine
