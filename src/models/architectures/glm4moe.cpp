#include "models/architectures/architectures.h"

namespace coterie::models {
namespace {

/// Sizes that a layer's network needs.
struct Sizes {
    std::int64_t leading_dense, dense_ffn, expert_ffn, shared_ffn;
};

Layer bind_layer(DecoderBuilder& builder, std::int64_t i, const Sizes& sizes, const cpu::Routing& routing,
                 const std::shared_ptr<const Rope>& rope) {
    Layer layer;
    layer.mixer_norm = builder.norm(i, "attn_norm");
    layer.mixer = builder.gqa(i, {.norm = GqaTraits::Norm::PerHead, .norm_required = false}, rope);
    layer.ffn_norm = builder.norm(i, "post_attention_norm");
    if (i < sizes.leading_dense) {
        layer.ffn = builder.tensors().dense_ffn(i, builder.embedding(), sizes.dense_ffn);
    } else {
        layer.ffn =
            builder.tensors().moe_ffn(i, builder.embedding(), routing, sizes.expert_ffn, sizes.shared_ffn);
    }
    return layer;
}

}  // namespace

/// GLM-4.5, 4.6, 4.7 and Air: sigmoid router with a selection bias, shared expert, dense leading layers,
/// partial rope; the norm before the feed-forward network is named post_attention_norm.
std::unique_ptr<Model> build_glm4moe(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const ModelConfig& model = builder.model().config;
    Sizes sizes{};
    sizes.leading_dense = config.count("leading_dense_block_count", 0);
    sizes.dense_ffn = sizes.leading_dense > 0 ? config.size("feed_forward_length") : 0;
    sizes.expert_ffn = config.size("expert_feed_forward_length");
    sizes.shared_ffn = sizes.expert_ffn * config.count("expert_shared_count", 0);
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Sigmoid, .normalise = true});

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < model.layers; ++i) {
        builder.add_layer(bind_layer(builder, i, sizes, routing, rope));
    }
    for (std::int64_t i = model.layers; i < model.layers + model.prediction_layers; ++i) {
        if (builder.has_prediction(i))
            builder.add_prediction(i, bind_layer(builder, i, sizes, routing, rope));
    }
    return builder.finish();
}

}  // namespace coterie::models
