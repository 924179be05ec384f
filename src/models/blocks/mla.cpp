#include "models/blocks/mla.h"

#include <utility>

namespace coterie::models {

Mla::Mla(Workspace& workspace, const Shape& shape, Weights weights, std::shared_ptr<const Rope> rope,
         float epsilon)
    : shape_(shape), weights_(std::move(weights)), rope_(std::move(rope)), epsilon_(epsilon) {
    if (weights_.query_down) query_latent_ = workspace.declare("query latent", weights_.query_down->rows);
    queries_ = workspace.declare("queries", shape.heads * (shape.nope_width + shape.rope_width));
    compressed_ = workspace.declare("compressed", row_width());
    latent_ = workspace.declare("latent", shape.latent_width);
    row_ = workspace.declare("latent row", row_width());
    absorbed_ = workspace.declare("absorbed queries", shape.heads * row_width());
    context_ = workspace.declare("latent context", shape.heads * shape.latent_width);
    heads_out_ = workspace.declare("heads out", shape.heads * shape.value_width);
}

void Mla::forward(LayerOps& ops, int layer, Value in, Value out) const {
    const auto [heads, nope, rope, latent, value, scale] = shape_;
    if (weights_.query_down) {
        const Projection down[] = {{*weights_.query_down, query_latent_},
                                   {weights_.latent_down, compressed_}};
        ops.project(in, down);
        ops.rms_norm(query_latent_, weights_.query_norm, epsilon_, query_latent_);
        const Projection up[] = {{weights_.query_up, queries_}};
        ops.project(query_latent_, up);
    } else {
        const Projection direct[] = {{weights_.query_up, queries_}, {weights_.latent_down, compressed_}};
        ops.project(in, direct);
    }

    // The cached row: [norm(latent) | rotated key part].
    ops.copy_heads(compressed_, row_width(), 0, latent_, latent, 0, latent, 1);
    ops.rms_norm(latent_, weights_.latent_norm, epsilon_, latent_);
    ops.rope(compressed_, row_width(), latent, *rope_);
    ops.copy_heads(latent_, latent, 0, row_, row_width(), 0, latent, 1);
    ops.copy_heads(compressed_, row_width(), latent, row_, row_width(), latent, rope, 1);

    // Per head [key_up nope | rotated query part].
    ops.rope(queries_, nope + rope, nope, *rope_);
    ops.project_heads(weights_.key_up, queries_, nope + rope, 0, absorbed_, row_width());
    ops.copy_heads(queries_, nope + rope, nope, absorbed_, row_width(), latent, rope, heads);

    const Attention attention{
        .heads = heads, .kv_heads = 1, .key_width = row_width(), .value_width = latent, .scale = scale};
    ops.attention(layer, attention, absorbed_, row_, Value{}, context_);
    ops.project_heads(weights_.value_up, context_, latent, 0, heads_out_, value);
    const Projection output[] = {{weights_.output, out}};
    ops.project(heads_out_, output);
}

LayerState Mla::state(const CacheFormat& format) const {
    return LatentLayer{row_width(), shape_.latent_width, format.keys};
}

}  // namespace coterie::models
