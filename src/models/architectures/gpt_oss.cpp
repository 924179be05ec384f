#include "models/architectures/architectures.h"

namespace coterie::models {

/// gpt-oss: attention sinks, sliding windows on even layers, biases everywhere, weights by a softmax over the
/// chosen experts, a clamped SwiGLU; the norm before the feed-forward network is named post_attention_norm.
std::unique_ptr<Model> build_gpt_oss(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const std::int64_t expert_ffn = config.size("expert_feed_forward_length");
    const std::int64_t window = config.size("attention.sliding_window");
    const cpu::Routing routing =
        config.routing({.gating = cpu::Gating::SoftmaxOfSelected, .normalise = false});

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {.window = i % 2 == 0 ? window : 0, .sinks = true}, rope);
        layer.ffn_norm = builder.norm(i, "post_attention_norm");
        MoeFfn ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, expert_ffn, 0);
        ffn.activation = FfnActivation::SwiGluOai;
        layer.ffn = std::move(ffn);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
