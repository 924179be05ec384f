#include "models/blocks/gated_delta_net.h"

#include <utility>

namespace coterie::models {

GatedDeltaNet::GatedDeltaNet(Workspace& workspace, const Shape& shape, Weights weights)
    : weights_(std::move(weights)),
      mixer_{.key_heads = shape.key_heads,
             .value_heads = shape.value_heads,
             .head_width = shape.head_width,
             .kernel = shape.kernel,
             .epsilon = shape.epsilon,
             .convolution = weights_.convolution,
             .decay = weights_.decay,
             .step_bias = weights_.step_bias,
             .norm = weights_.norm} {
    qkv_ = workspace.declare("delta qkv", mixer_.channels());
    gate_ = workspace.declare("delta gate", shape.value_heads * shape.head_width);
    if (weights_.fused) fused_ = workspace.declare("delta fused", weights_.fused->rows);
    beta_alpha_ = workspace.declare("delta beta alpha", 2 * shape.value_heads);
    beta_ = workspace.declare("delta beta", shape.value_heads);
    alpha_ = workspace.declare("delta alpha", shape.value_heads);
    mixed_ = workspace.declare("delta out", shape.value_heads * shape.head_width);
}

void GatedDeltaNet::forward(LayerOps& ops, int layer, Value in, Value out) const {
    const std::int64_t per_key = mixer_.value_heads / mixer_.key_heads;
    if (weights_.fused) {
        const Projection projections[] = {{*weights_.fused, fused_}, {weights_.beta_alpha, beta_alpha_}};
        ops.project(in, projections);
        split_fused(ops);
    } else {
        const Projection projections[] = {
            {weights_.qkv, qkv_}, {weights_.gate, gate_}, {weights_.beta_alpha, beta_alpha_}};
        ops.project(in, projections);
    }
    ops.copy_heads(beta_alpha_, 2 * per_key, 0, beta_, per_key, 0, per_key, mixer_.key_heads);
    ops.copy_heads(beta_alpha_, 2 * per_key, per_key, alpha_, per_key, 0, per_key, mixer_.key_heads);
    ops.delta_net(layer, mixer_, qkv_, gate_, beta_, alpha_, mixed_);
    const Projection output[] = {{weights_.output, out}};
    ops.project(mixed_, output);
}

void GatedDeltaNet::split_fused(LayerOps& ops) const {
    const std::int64_t keys = mixer_.key_heads;
    const std::int64_t width = mixer_.head_width;
    const std::int64_t values = mixer_.value_heads / keys * width;
    const std::int64_t stride = 2 * width + 2 * values;
    ops.copy_heads(fused_, stride, 0, qkv_, width, 0, width, keys);
    ops.copy_heads(fused_, stride, width, qkv_, width, keys * width, width, keys);
    ops.copy_heads(fused_, stride, 2 * width, qkv_, values, 2 * keys * width, values, keys);
    ops.copy_heads(fused_, stride, 2 * width + values, gate_, values, 0, values, keys);
}

LayerState GatedDeltaNet::state(const CacheFormat&) const { return RecurrentLayer{mixer_.state_floats()}; }

}  // namespace coterie::models
