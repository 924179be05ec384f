#include "engine/forward/cuda/resident_table.h"

#include <algorithm>

namespace coterie::engine {

ResidentTable::ResidentTable(CudaDevice& device, DeviceArena& arena, const WeightList& list) {
    std::int64_t experts = 0;
    for (const models::MoeFfn* ffn : list.experts) {
        first_.push_back(experts);
        if (ffn != nullptr) experts += ffn->routing.experts;
    }
    first_.push_back(experts);
    host_ = device.allocate_pinned(static_cast<std::uint64_t>(experts) * sizeof(std::uint64_t));
    device_ = arena.take<std::uint64_t>(experts);
}

std::span<std::uint64_t> ResidentTable::row(int layer) const {
    const auto i = static_cast<std::size_t>(layer);
    return {reinterpret_cast<std::uint64_t*>(host_->span().data()) + first_[i],
            static_cast<std::size_t>(first_[i + 1] - first_[i])};
}

std::span<const std::uint64_t> ResidentTable::host_layer(int layer) const { return row(layer); }

std::span<std::uint64_t> ResidentTable::edit(int layer) {
    forget();
    return row(layer);
}

void ResidentTable::refresh(const expert_cache::ExpertCache& cache, std::int32_t index, Stream& stream) {
    const std::uint32_t version = cache.version();
    if (fresh_ && version == version_) return;
    complete_ = true;
    for (int layer = 0; layer + 1 < static_cast<int>(first_.size()); ++layer) {
        if (row(layer).empty()) continue;
        cache.residents(index, layer, row(layer));
        complete_ = complete_ && std::find(row(layer).begin(), row(layer).end(), 0u) == row(layer).end();
    }
    send(stream);
    version_ = version;
    fresh_ = true;
}

void ResidentTable::send(Stream& stream) const {
    stream.copy_to_device(device_address(device_), host_->span());
}

}  // namespace coterie::engine
