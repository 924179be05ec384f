#include "models/blocks/gqa.h"

#include <utility>

namespace coterie::models {

Gqa::Gqa(Workspace& workspace, const Shape& shape, Weights weights, std::shared_ptr<const Rope> rope,
         float epsilon)
    : shape_(shape), weights_(std::move(weights)), rope_(std::move(rope)), epsilon_(epsilon) {
    queries_ = workspace.declare("queries", shape.heads * shape.key_width);
    keys_ = workspace.declare("keys", shape.kv_heads * shape.key_width);
    values_ = workspace.declare("values", shape.kv_heads * shape.value_width);
    heads_out_ = workspace.declare("heads out", shape.heads * shape.value_width);
    if (!shape.gated) return;
    queries_and_gates_ = workspace.declare("queries and gates", 2 * shape.heads * shape.key_width);
    gates_ = workspace.declare("gates", shape.heads * shape.key_width);
}

void Gqa::forward(LayerOps& ops, int layer, Value in, Value out) const {
    const std::int64_t width = shape_.key_width;
    const Value projected = shape_.gated ? queries_and_gates_ : queries_;
    const Projection projections[] = {
        {weights_.query, projected}, {weights_.key, keys_}, {weights_.value, values_}};
    ops.project(in, projections);
    if (shape_.gated) {
        ops.copy_heads(projected, 2 * width, 0, queries_, width, 0, width, shape_.heads);
        ops.copy_heads(projected, 2 * width, width, gates_, width, 0, width, shape_.heads);
    }
    if (!weights_.query_norm.empty()) ops.rms_norm(queries_, weights_.query_norm, epsilon_, queries_);
    if (!weights_.key_norm.empty()) ops.rms_norm(keys_, weights_.key_norm, epsilon_, keys_);
    ops.rope(queries_, width, 0, *rope_);
    ops.rope(keys_, width, 0, *rope_);

    const Attention attention{.heads = shape_.heads,
                              .kv_heads = shape_.kv_heads,
                              .key_width = width,
                              .value_width = shape_.value_width,
                              .scale = shape_.scale,
                              .window = shape_.window,
                              .sinks = &weights_.sinks};
    ops.attention(layer, attention, queries_, keys_, values_, heads_out_);
    if (shape_.gated) ops.sigmoid_gate(heads_out_, gates_);
    const Projection output[] = {{weights_.output, out}};
    ops.project(heads_out_, output);
}

LayerState Gqa::state(const CacheFormat& format) const {
    return KeyValueLayer{shape_.kv_heads, shape_.key_width, shape_.value_width, format.keys, format.values};
}

}  // namespace coterie::models
