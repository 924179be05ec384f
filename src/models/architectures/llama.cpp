#include "models/architectures/architectures.h"

namespace coterie::models {

/// Llama 2 and 3, Mistral, and Mixtral (the same with experts, whose chosen weights are normalised).
std::unique_ptr<Model> build_llama(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const std::int64_t ffn = config.size("feed_forward_length");
    const bool experts = builder.model().config.experts > 0;
    const cpu::Routing routing =
        experts ? config.routing({.gating = cpu::Gating::Softmax, .normalise = true}) : cpu::Routing{};

    const auto rope = builder.rope(RopeStyle::Adjacent);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {}, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        if (experts) {
            layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, ffn, 0);
        } else {
            layer.ffn = builder.tensors().dense_ffn(i, builder.embedding(), ffn);
        }
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
