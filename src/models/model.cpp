#include "models/model.h"

namespace coterie::models {

void Model::forward(LayerOps& ops) const {
    ops.embed(token_embedding, residual);
    for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
        const Layer& layer = layers[static_cast<std::size_t>(i)];
        ops.rms_norm(residual, layer.mixer_norm, config.epsilon, normed);
        layer.mixer->forward(ops, i, normed, branch);
        ops.add(residual, branch);

        ops.rms_norm(residual, layer.ffn_norm, config.epsilon, normed);
        if (const auto* moe = std::get_if<MoeFfn>(&layer.ffn)) {
            ops.moe_ffn(i, *moe, normed, branch);
        } else {
            ops.dense_ffn(std::get<DenseFfn>(layer.ffn), normed, branch);
        }
        ops.add(residual, branch);
        ops.layer_done(i, residual);
    }
    ops.logits(residual, output_norm, config.epsilon, output);
}

StateLayout Model::state_layout(const CacheFormat& format) const {
    std::vector<LayerState> states;
    states.reserve(layers.size());
    for (const Layer& layer : layers) states.push_back(layer.mixer->state(format));
    return StateLayout(std::move(states));
}

}  // namespace coterie::models
