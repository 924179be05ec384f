#include "engine/forward/cuda/link_path.h"

#include <algorithm>

#include "kernels/cuda/matmul.h"

namespace coterie::engine {
namespace {

bool aligned(const models::ExpertMatrix& matrix) {
    return std::all_of(matrix.data.begin(), matrix.data.end(), [](const std::byte* data) {
        return reinterpret_cast<std::uint64_t>(data) % cuda::kWeightAlignment == 0;
    });
}

bool aligned(const models::MoeFfn& ffn) { return aligned(ffn.gate) && aligned(ffn.up) && aligned(ffn.down); }

}  // namespace

LinkPath::LinkPath(CudaDevice& device, DeviceArena& arena, const WeightList& list, bool readable)
    : layers_(list.experts.size()) {
    if (!readable) return;
    std::int64_t total = 0;
    for (const models::MoeFfn* ffn : list.experts) total += ffn != nullptr ? 3 * ffn->routing.experts : 0;
    if (total == 0) return;
    const auto host = device.allocate_pinned(static_cast<std::uint64_t>(total) * sizeof(std::uint64_t));
    auto* next_host = reinterpret_cast<std::uint64_t*>(host->span().data());
    auto* next = arena.take<std::uint64_t>(total);
    const DeviceAddress table = device_address(next);
    const auto place = [&](const models::ExpertMatrix& matrix) {
        for (const std::byte* data : matrix.data) *next_host++ = reinterpret_cast<std::uint64_t>(data);
        const std::uint64_t* at = next;
        next += matrix.data.size();
        return at;
    };
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const models::MoeFfn* ffn = list.experts[i];
        if (ffn != nullptr && aligned(*ffn))
            layers_[i] = {place(ffn->gate), place(ffn->up), place(ffn->down)};
    }
    const auto stream = device.create_stream();
    stream->copy_to_device(table, host->span());
    stream->synchronise();
}

cuda::LinkShare LinkPath::share(int layer, std::int64_t tokens) const {
    return tokens == 1 && addresses(layer).gate != nullptr ? share_ : cuda::LinkShare{};
}

}  // namespace coterie::engine
