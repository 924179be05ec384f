#include "models/architectures/architectures.h"

namespace coterie::models {

/// Qwen3, dense: queries and keys are normalised per head.
std::unique_ptr<Model> build_qwen3(DecoderBuilder& builder) {
    const std::int64_t ffn = builder.config().size("feed_forward_length");

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = builder.gqa(i, {.norm = GqaTraits::Norm::PerHead}, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        layer.ffn = builder.tensors().dense_ffn(i, builder.embedding(), ffn);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
