#include "models/architectures/architectures.h"

namespace coterie::models {

/// Qwen3 with experts (30B-A3B, 235B-A22B): queries and keys normalised per head, expert weights normalised.
std::unique_ptr<Model> build_qwen3moe(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const std::int64_t expert_ffn = config.size("expert_feed_forward_length");
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Softmax, .normalise = true});

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {.norm = GqaTraits::Norm::PerHead}, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, expert_ffn, 0);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
