#include <cmath>

#include "models/architectures/architectures.h"
#include "models/blocks/mla.h"

namespace coterie::models {
namespace {

/// Attention sizes of both forms of the file: newer ones give the decompressed widths in *_mla keys, older
/// ones in key_length and value_length.
Mla::Shape read_shape(const DecoderBuilder& builder, const RopeScaling& scaling) {
    const ConfigReader& config = builder.config();
    const bool newer = config.has("attention.key_length_mla");
    Mla::Shape shape{};
    shape.heads = config.size("attention.head_count");
    shape.rope_width = config.size("rope.dimension_count");
    shape.latent_width = config.size("attention.kv_lora_rank");
    const std::int64_t key_width = config.size(newer ? "attention.key_length_mla" : "attention.key_length");
    shape.value_width = config.size(newer ? "attention.value_length_mla" : "attention.value_length");
    shape.nope_width = key_width - shape.rope_width;
    if (shape.nope_width < 1) config.refuse("rope.dimension_count", "is not below the key width");

    // The scale carries YaRN's magnitude squared; cosines and sines carry none.
    const double mscale = config.positive_or_zero("rope.scaling.yarn_log_multiplier", 0.0) / 0.1;
    const double growth =
        scaling.kind == RopeScaling::Kind::Yarn ? 1.0 + 0.1 * mscale * std::log(scaling.factor) : 1.0;
    shape.scale = static_cast<float>(growth * growth / std::sqrt(static_cast<double>(key_width)));
    return shape;
}

/// Older files hold per head nope rows of the key's and value rows of the value's up-projection in one
/// matrix. The absorbed form needs the key part transposed; it is kept in binary32.
void split_key_value(DecoderBuilder& builder, const Matrix& fused, const Mla::Shape& shape,
                     Mla::Weights& weights) {
    const std::int64_t head_rows = shape.nope_width + shape.value_width;
    const std::int64_t matrix_values = shape.nope_width * shape.latent_width;
    AlignedBuffer<float> keys(static_cast<std::size_t>(shape.heads * matrix_values));
    Vector row(static_cast<std::size_t>(shape.latent_width));
    weights.key_up = {.name = fused.name + " (keys)",
                      .type = DataType::F32,
                      .columns = shape.nope_width,
                      .rows = shape.latent_width,
                      .row_bytes = shape.nope_width * static_cast<std::int64_t>(sizeof(float)),
                      .data = {},
                      .scales = {},
                      .bias = {}};
    weights.value_up = {.name = fused.name + " (values)",
                        .type = fused.type,
                        .columns = shape.latent_width,
                        .rows = shape.value_width,
                        .row_bytes = fused.row_bytes,
                        .data = {},
                        .scales = {},
                        .bias = {}};
    for (std::int64_t h = 0; h < shape.heads; ++h) {
        const std::byte* head = fused.data + h * head_rows * fused.row_bytes;
        float* transposed = keys.data() + h * matrix_values;
        for (std::int64_t i = 0; i < shape.nope_width; ++i) {
            traits(fused.type).decode(head + i * fused.row_bytes, shape.latent_width, row.data());
            for (std::int64_t r = 0; r < shape.latent_width; ++r) {
                transposed[r * shape.nope_width + i] = row[static_cast<std::size_t>(r)];
            }
        }
        weights.key_up.data.push_back(reinterpret_cast<const std::byte*>(transposed));
        weights.value_up.data.push_back(head + shape.nope_width * fused.row_bytes);
    }
    builder.model().derived.push_back(std::move(keys));
}

std::unique_ptr<Mixer> bind_mla(DecoderBuilder& builder, std::int64_t i, const Mla::Shape& shape,
                                const std::shared_ptr<const Rope>& rope) {
    TensorBinder& tensors = builder.tensors();
    const ConfigReader& config = builder.config();
    const auto name = [&](std::string_view part) { return TensorBinder::layer(i, part); };
    const std::int64_t query_rows = shape.heads * (shape.nope_width + shape.rope_width);
    Mla::Weights weights;
    if (config.has("attention.q_lora_rank")) {
        const std::int64_t rank = config.size("attention.q_lora_rank");
        weights.query_down = tensors.matrix(name("attn_q_a"), builder.embedding(), rank);
        weights.query_norm = tensors.vector(name("attn_q_a_norm.weight"), rank);
        weights.query_up = tensors.matrix(name("attn_q_b"), rank, query_rows);
    } else {
        weights.query_up = tensors.matrix(name("attn_q"), builder.embedding(), query_rows);
    }
    weights.latent_down =
        tensors.matrix(name("attn_kv_a_mqa"), builder.embedding(), shape.latent_width + shape.rope_width);
    weights.latent_norm = tensors.vector(name("attn_kv_a_norm.weight"), shape.latent_width);
    if (tensors.has(name("attn_k_b"))) {
        weights.key_up = tensors.stacked(name("attn_k_b"), shape.nope_width, shape.latent_width, shape.heads);
        weights.value_up =
            tensors.stacked(name("attn_v_b"), shape.latent_width, shape.value_width, shape.heads);
    } else {
        const Matrix fused = tensors.matrix(name("attn_kv_b"), shape.latent_width,
                                            shape.heads * (shape.nope_width + shape.value_width));
        split_key_value(builder, fused, shape, weights);
    }
    weights.output =
        tensors.matrix(name("attn_output"), shape.heads * shape.value_width, builder.embedding());
    Extents& extents = builder.model().extents;
    extents.widest_head = std::max({extents.widest_head, shape.nope_width, shape.latent_width});
    return std::make_unique<Mla>(builder.model().workspace, shape, std::move(weights), rope,
                                 builder.model().config.epsilon);
}

}  // namespace

/// DeepSeek-V2, V2-Lite, V3, R1 and Kimi-K2: latent attention, dense leading layers, shared experts, routing
/// within the best groups.
std::unique_ptr<Model> build_deepseek2(DecoderBuilder& builder) {
    const ConfigReader& config = builder.config();
    const RopeScaling scaling = read_rope_scaling(config);
    const Mla::Shape shape = read_shape(builder, scaling);
    const std::int64_t leading_dense = config.count("leading_dense_block_count", 0);
    const std::int64_t dense_ffn = leading_dense > 0 ? config.size("feed_forward_length") : 0;
    const std::int64_t expert_ffn = config.size("expert_feed_forward_length");
    const std::int64_t shared_ffn = expert_ffn * config.count("expert_shared_count", 0);
    const cpu::Routing routing = config.routing({.gating = cpu::Gating::Softmax, .normalise = false});

    auto rope = std::make_shared<Rope>();
    rope->style = RopeStyle::Adjacent;
    rope->frequencies =
        rope_frequencies(shape.rope_width, config.positive("rope.freq_base", 10000.0), scaling, {});
    for (std::int64_t i = 0; i < builder.model().config.layers; ++i) {
        Layer layer;
        layer.mixer_norm = builder.norm(i, "attn_norm");
        layer.mixer = bind_mla(builder, i, shape, rope);
        layer.ffn_norm = builder.norm(i, "ffn_norm");
        if (i < leading_dense) {
            layer.ffn = builder.tensors().dense_ffn(i, builder.embedding(), dense_ffn);
        } else {
            layer.ffn = builder.tensors().moe_ffn(i, builder.embedding(), routing, expert_ffn, shared_ffn);
        }
        builder.add_layer(std::move(layer));
    }
    return builder.finish();
}

}  // namespace coterie::models
