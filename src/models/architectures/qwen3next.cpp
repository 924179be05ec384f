#include "models/architectures/architectures.h"
#include "models/blocks/gated_delta_net.h"

namespace coterie::models {
namespace {

GatedDeltaNet::Shape read_shape(const DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    GatedDeltaNet::Shape shape{};
    shape.key_heads = config.size("ssm.group_count");
    shape.value_heads = config.size("ssm.time_step_rank");
    shape.head_width = config.size("ssm.state_size");
    shape.kernel = config.size("ssm.conv_kernel");
    shape.epsilon = builder.model().config.epsilon;
    if (shape.value_heads % shape.key_heads != 0)
        config.refuse("ssm.group_count", "does not divide ssm.time_step_rank");
    if (shape.value_heads * shape.head_width != config.size("ssm.inner_size")) {
        config.refuse("ssm.inner_size", "is not ssm.time_step_rank times ssm.state_size");
    }
    return shape;
}

/// The file has [channels][kernel]; the convolution reads [kernel][channels].
Vector transpose(const Vector& taps, std::int64_t channels, std::int64_t kernel) {
    Vector result(taps.size());
    for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t k = 0; k < kernel; ++k) {
            result[static_cast<std::size_t>(k * channels + c)] =
                taps[static_cast<std::size_t>(c * kernel + k)];
        }
    }
    return result;
}

std::unique_ptr<Mixer> bind_delta_net(DecoderBuilder& builder, std::int64_t i,
                                      const GatedDeltaNet::Shape& shape) {
    TensorBinder& tensors = builder.tensors();
    const auto name = [&](std::string_view part) { return TensorBinder::layer(i, part); };
    const std::int64_t embedding = builder.embedding();
    const std::int64_t inner = shape.value_heads * shape.head_width;
    const std::int64_t channels = 2 * shape.key_heads * shape.head_width + inner;
    GatedDeltaNet::Weights weights;
    if (tensors.has(name("ssm_in"))) {
        weights.fused = tensors.matrix(name("ssm_in"), embedding, channels + inner);
    } else {
        weights.qkv = tensors.matrix(name("attn_qkv"), embedding, channels);
        weights.gate = tensors.matrix(name("attn_gate"), embedding, inner);
    }
    weights.beta_alpha = tensors.matrix(name("ssm_ba"), embedding, 2 * shape.value_heads);
    weights.convolution =
        transpose(tensors.vector(name("ssm_conv1d.weight"), channels * shape.kernel), channels, shape.kernel);
    weights.decay = tensors.vector(name("ssm_a"), shape.value_heads);
    weights.step_bias = tensors.vector(name("ssm_dt.bias"), shape.value_heads);
    weights.norm = tensors.vector(name("ssm_norm.weight"), shape.head_width);
    weights.output = tensors.matrix(name("ssm_out"), inner, embedding);
    Extents& extents = builder.model().extents;
    extents.delta_net_channels = std::max(extents.delta_net_channels, channels);
    return std::make_unique<GatedDeltaNet>(builder.model().workspace, shape, std::move(weights));
}

}  // namespace

/// Qwen3-Next: three of four layers are gated delta nets, every fourth is attention with an output gate;
/// experts with a gated shared expert. The norm before the feed-forward network is named post_attention_norm.
std::unique_ptr<Model> build_qwen3next(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const GatedDeltaNet::Shape shape = read_shape(builder);
    const std::int64_t interval = config.size("full_attention_interval", 4);
    const std::int64_t expert_ffn = config.size("expert_feed_forward_length");
    const std::int64_t shared_ffn = config.count("expert_shared_feed_forward_length", 0);
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Softmax, .normalise = true});

    const auto rope = builder.rope(RopeStyle::Halves);
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        if ((i + 1) % interval == 0) {
            layer.mixer = builder.gqa(i, {.norm = GqaTraits::Norm::PerHead, .gated = true}, rope);
        } else {
            layer.mixer = bind_delta_net(builder, i, shape);
        }
        layer.ffn_norm = builder.norm(i, "post_attention_norm");
        layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, expert_ffn, shared_ffn);
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
