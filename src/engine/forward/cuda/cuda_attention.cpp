#include <algorithm>

#include "base/error.h"
#include "engine/forward/cuda/cuda_ops.h"

namespace coterie::engine {

using models::Value;

cuda::CachePages CudaOps::cache_of(int layer) const {
    const auto& types = std::get<KeyValueLayer>(layout_->layer(layer));
    const PagePart& keys = layout_->keys(layer);
    const PagePart& values = layout_->values(layer);
    return {.base = pages_.pages,
            .page_bytes = pages_.bytes,
            .keys = {keys.offset - pages_.first, keys.row_bytes, keys.head_bytes, types.key_type},
            .values = {values.offset - pages_.first, values.row_bytes, values.head_bytes, types.value_type}};
}

/// Full cells on tensor cores where heads and cache allow it, all other rows by the law.
void CudaOps::prompt_attention(cuda::AttentionArgs args) const {
    const cuda::PromptCells cells = view_.block->cells();
    if (cells.count > 0 && cuda::attends_in_cells(args)) {
        cuda::attention_of_cells(args, cells, handle());
        if (cells.count * kPageTokens == view_.tokens) return;
    } else {
        args.places.in_cells = nullptr;
    }
    cuda::prompt_attention(args, handle());
}

void CudaOps::attention(int layer, const models::Attention& attention, Value queries, Value keys,
                        Value values, Value out) {
    flush();
    const HeadWork query_work = head_work(queries);
    const HeadWork key_work = head_work(keys);
    const models::Rope* rope = query_work.rope != nullptr ? query_work.rope : key_work.rope;
    COTERIE_CHECK(rope == nullptr || key_work.rope == nullptr || key_work.rope == rope);
    const auto pairs = [](const HeadWork& work) {
        return work.rope == nullptr ? 0 : static_cast<std::int32_t>(work.rope->frequencies.size());
    };
    cuda::AttentionInputs inputs;
    inputs.queries = rows(buffer(queries));
    inputs.keys = rows(buffer(keys));
    inputs.values = rows(buffer(values));
    inputs.heads = static_cast<std::int32_t>(attention.heads);
    inputs.kv_heads = static_cast<std::int32_t>(attention.kv_heads);
    inputs.key_width = static_cast<std::int32_t>(attention.key_width);
    inputs.value_width = static_cast<std::int32_t>(attention.value_width);
    inputs.query_norm = query_work.norm != nullptr ? parts_.weights.at(*query_work.norm) : nullptr;
    inputs.key_norm = key_work.norm != nullptr ? parts_.weights.at(*key_work.norm) : nullptr;
    inputs.query_epsilon = query_work.epsilon;
    inputs.key_epsilon = key_work.epsilon;
    inputs.query_pairs = pairs(query_work);
    inputs.key_pairs = pairs(key_work);
    if (rope != nullptr) {
        inputs.style = rope->style == models::RopeStyle::Adjacent ? cuda::RotationStyle::Adjacent
                                                                  : cuda::RotationStyle::Halves;
        const StepBlock::Angles angles = view_.block->angles(*rope);
        inputs.cosines = angles.cosines;
        inputs.sines = angles.sines;
    }
    inputs.places = view_.block->places();
    inputs.cache = cache_of(layer);
    head_work(queries) = {};
    head_work(keys) = {};

    Buffer& to = buffer(out);
    cuda::AttentionArgs args;
    args.queries = inputs.queries;
    args.heads = inputs.heads;
    args.kv_heads = inputs.kv_heads;
    args.key_width = inputs.key_width;
    args.value_width = inputs.value_width;
    args.scale = attention.scale;
    args.window = static_cast<std::int32_t>(attention.window);
    args.sinks = attention.sinks != nullptr ? parts_.weights.at(*attention.sinks) : nullptr;
    args.places = inputs.places;
    args.cache = inputs.cache;
    args.out = to.data;
    args.out_stride = to.stride;
    to.quantised_now = attention.value_width % kGroupValues == 0;
    if (to.quantised_now) args.quantised = to.quantised;
    args.pages = view_.pages;
    if (attention.window > 0) {
        const auto visible = static_cast<std::int32_t>(pages_for(attention.window) + 1);
        args.pages = std::min(args.pages, visible);
    }
    const std::int64_t floats = view_.tokens * attention.heads * args.pages * (attention.value_width + 2);
    args.partials = view_.tokens <= kWindowTokens && floats <= partial_floats_ ? partials_ : nullptr;
    if (view_.tokens > kWindowTokens) {
        cuda::store_attention_inputs(inputs, handle());
        return prompt_attention(args);
    }
    args.arrivals = arrivals_;
    cuda::attention_of_step(inputs, args, handle());
}

}  // namespace coterie::engine
