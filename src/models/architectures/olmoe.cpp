#include "models/architectures/architectures.h"

namespace coterie::models {

/// OLMoE: queries and keys are normalised as whole rows, the chosen experts' weights are not normalised.
std::unique_ptr<Model> build_olmoe(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const std::int64_t ffn = config.size("feed_forward_length");
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Softmax, .normalise = false});
    if (config.has("attention.clamp_kqv")) {
        config.refuse("attention.clamp_kqv", "is set, which this program does not support");
    }

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {.norm = GqaTraits::Norm::WholeRow}, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, ffn, 0);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
