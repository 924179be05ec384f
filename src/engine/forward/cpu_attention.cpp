#include <algorithm>

#include "engine/forward/cpu_ops.h"

namespace coterie::engine {
namespace {

/// How a layer's keys and values are stored.
struct CacheTypes {
    cpu::CacheType keys;
    cpu::CacheType values;
};

CacheTypes cache_types(const StateLayout& layout, std::int64_t layer) {
    if (const auto* latent = std::get_if<LatentLayer>(&layout.layer(layer)))
        return {latent->type, latent->type};
    const auto& both = std::get<KeyValueLayer>(layout.layer(layer));
    return {both.key_type, both.value_type};
}

}  // namespace

void CpuOps::store_keys_values(int layer, const models::Attention& attention, models::Value keys,
                               models::Value values) {
    for_rows(rows() * keys.width, [&](std::int64_t t) {
        SequenceState& state =
            *step_->slices[static_cast<std::size_t>(slice_of_[static_cast<std::size_t>(t)])].state;
        const StateLayout& layout = state.layout();
        const CacheTypes types = cache_types(layout, layer);
        const std::int64_t position = positions_[static_cast<std::size_t>(t)];
        std::byte* key_row = state.key_row(layer, position);
        for (std::int64_t h = 0; h < attention.kv_heads; ++h) {
            kernels_.store_cache(types.keys, row(keys, t) + h * attention.key_width, attention.key_width,
                                 key_row + static_cast<std::uint64_t>(h) * layout.keys(layer).head_bytes);
        }
        if (values.index < 0) return;
        std::byte* value_row = state.value_row(layer, position);
        for (std::int64_t h = 0; h < attention.kv_heads; ++h) {
            kernels_.store_cache(types.values, row(values, t) + h * attention.value_width,
                                 attention.value_width,
                                 value_row + static_cast<std::uint64_t>(h) * layout.values(layer).head_bytes);
        }
    });
}

void CpuOps::attention(int layer, const models::Attention& attention, models::Value queries,
                       models::Value keys, models::Value values, models::Value out) {
    store_keys_values(layer, attention, keys, values);
    const std::int64_t group = attention.heads / attention.kv_heads;
    // Neighbouring tasks are neighbouring tokens of one key-value head: they read the same pages.
    const std::int64_t tasks = attention.kv_heads * rows();
    const std::int64_t grain = std::clamp<std::int64_t>(tasks / (8 * pool_.size()), 1, 16);
    pool_.parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t head = task / rows();
            const std::int64_t t = task % rows();
            const SequenceState& state =
                *step_->slices[static_cast<std::size_t>(slice_of_[static_cast<std::size_t>(t)])].state;
            const StateLayout& layout = state.layout();
            const CacheTypes types = cache_types(layout, layer);
            const std::int64_t position = positions_[static_cast<std::size_t>(t)];
            kernels_.attention({.queries = row(queries, t) + head * group * attention.key_width,
                                .heads = group,
                                .key_width = attention.key_width,
                                .value_width = attention.value_width,
                                .key_pages = state.key_pages(layer, head),
                                .value_pages = state.value_pages(layer, head),
                                .key_stride = static_cast<std::int64_t>(layout.keys(layer).row_bytes),
                                .value_stride = static_cast<std::int64_t>(layout.values(layer).row_bytes),
                                .key_type = types.keys,
                                .value_type = types.values,
                                .first = attention.window > 0
                                             ? std::max<std::int64_t>(0, position - attention.window + 1)
                                             : 0,
                                .last = position,
                                .scale = attention.scale,
                                .sinks = attention.sinks && !attention.sinks->empty()
                                             ? attention.sinks->data() + head * group
                                             : nullptr,
                                .out = row(out, t) + head * group * attention.value_width,
                                .out_stride = attention.value_width});
        }
    });
}

}  // namespace coterie::engine
