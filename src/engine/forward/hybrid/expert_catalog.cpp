#include "engine/forward/hybrid/expert_catalog.h"

#include <algorithm>
#include <variant>

#include "base/error.h"

namespace coterie::engine {
namespace {

std::uint64_t bytes_of(const models::ExpertMatrix& matrix) {
    return static_cast<std::uint64_t>(matrix.bytes_per_expert());
}

bool same_form(const models::ExpertMatrix& a, const models::ExpertMatrix& b) {
    return a.type == b.type && a.columns == b.columns && a.rows == b.rows;
}

std::span<const std::byte> piece(const models::ExpertMatrix& matrix, std::int32_t expert) {
    return {matrix.data[static_cast<std::size_t>(expert)],
            static_cast<std::size_t>(matrix.bytes_per_expert())};
}

}  // namespace

ExpertJob SlotLayout::in_slot(const ExpertJob& job, const std::byte* slot) const {
    ExpertJob moved = job;
    moved.gate.data = slot;
    moved.up.data = slot + up_offset;
    moved.down.data = slot + down_offset;
    return moved;
}

ExpertCatalog::ExpertCatalog(const models::Model& model) {
    for (const models::Layer& layer : model.layers)
        layers_.push_back(std::get_if<models::MoeFfn>(&layer.ffn));
    layouts_.resize(layers_.size());
    shapes_.resize(layers_.size());
    kinds_.resize(layers_.size());
    for (int layer = 0; layer < layers(); ++layer) {
        if (const models::MoeFfn* ffn = this->layer(layer)) add(layer, *ffn);
    }
}

void ExpertCatalog::add(int layer, const models::MoeFfn& ffn) {
    const auto i = static_cast<std::size_t>(layer);
    const std::uint64_t up = bytes_of(ffn.gate);
    const std::uint64_t down = up + bytes_of(ffn.up);
    layouts_[i] = {.up_offset = up, .down_offset = down, .bytes = down + bytes_of(ffn.down)};
    const auto count = static_cast<std::int32_t>(ffn.gate.data.size());
    shapes_[i] = {.experts = count, .expert_bytes = layouts_[i].bytes};
    experts_ += count;
    kinds_[i] = kind_of(ffn);
    kind_count_ = std::max(kind_count_, kinds_[i] + 1);
}

std::int32_t ExpertCatalog::kind_of(const models::MoeFfn& ffn) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const models::MoeFfn* other = layers_[i];
        if (other == nullptr) continue;
        if (other == &ffn) break;
        if (same_form(other->gate, ffn.gate) && same_form(other->up, ffn.up) &&
            same_form(other->down, ffn.down)) {
            return kinds_[i];
        }
    }
    return kind_count_;
}

std::uint64_t ExpertCatalog::largest_expert() const {
    std::uint64_t largest = 0;
    for (const SlotLayout& layout : layouts_) largest = std::max(largest, layout.bytes);
    return largest;
}

std::int64_t ExpertCatalog::largest_hidden() const {
    std::int64_t largest = 0;
    for (const models::MoeFfn* ffn : layers_) {
        if (ffn != nullptr) largest = std::max(largest, ffn->down.columns);
    }
    return largest;
}

expert_cache::HostExpert ExpertCatalog::source(expert_cache::ExpertKey key) const {
    const models::MoeFfn* ffn = layer(key.layer);
    COTERIE_CHECK(ffn != nullptr);
    return {
        .pieces = {piece(ffn->gate, key.expert), piece(ffn->up, key.expert), piece(ffn->down, key.expert)},
        .memory = host_memory_};
}

}  // namespace coterie::engine
