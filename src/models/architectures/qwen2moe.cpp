#include "models/architectures/architectures.h"

namespace coterie::models {

/// Qwen1.5-MoE and Qwen2-57B-A14B: biases on q, k and v, and a shared expert behind a sigmoid gate.
std::unique_ptr<Model> build_qwen2moe(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const std::int64_t expert_ffn = config.size("expert_feed_forward_length");
    const std::int64_t shared_ffn = config.size("expert_shared_feed_forward_length");
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Softmax, .normalise = false});

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {}, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, expert_ffn, shared_ffn);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
