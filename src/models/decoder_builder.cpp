#include "models/decoder_builder.h"

#include <cmath>

#include "base/error.h"
#include "base/log.h"

namespace coterie::models {

DecoderBuilder::DecoderBuilder(const gguf::Archive& archive)
    : config_(archive.metadata()), model_(std::make_unique<Model>()), tensors_(archive, model_->extents) {
    model_->config = config_.common();
    const auto tensor_count = static_cast<std::int64_t>(archive.tensors().size());
    if (model_->config.layers > tensor_count) {
        config_.refuse("block_count",
                       fmt::format("asks for more layers than the file has tensors ({})", tensor_count));
    }
    if (model_->config.experts == 0 && tensors_.has_experts()) {
        config_.refuse("expert_count", "is missing or 0, but the file has expert tensors");
    }
}

DecoderBuilder::HeadShape DecoderBuilder::head_shape() const {
    const std::int64_t layers = model_->config.layers;
    const std::int64_t heads = config_.uniform_size("attention.head_count", layers);
    const std::int64_t kv_heads = config_.has("attention.head_count_kv")
                                      ? config_.uniform_size("attention.head_count_kv", layers)
                                      : heads;
    if (heads % kv_heads != 0)
        config_.refuse("attention.head_count_kv", "does not divide attention.head_count");
    const std::int64_t key_width = config_.size("attention.key_length", embedding() / heads);
    return {heads, kv_heads, key_width, config_.size("attention.value_length", key_width)};
}

std::shared_ptr<const Rope> DecoderBuilder::rope(RopeStyle style) {
    const std::int64_t width = head_shape().key_width;
    const std::int64_t dimensions = config_.size("rope.dimension_count", width);
    if (dimensions % 2 != 0 || dimensions > width) {
        config_.refuse("rope.dimension_count",
                       fmt::format("is {}; it must be even and at most {}", dimensions, width));
    }
    const RopeScaling scaling = read_rope_scaling(config_);
    const Vector factors = tensors_.optional_vector("rope_freqs.weight", dimensions / 2);
    for (const float factor : factors) {
        if (factor > 0.0f && std::isfinite(factor)) continue;
        fail(ErrorCode::InvalidFile, "{}: tensor 'rope_freqs.weight' holds {}; all of it must be above 0",
             config_.metadata().file(), factor);
    }
    auto rope = std::make_shared<Rope>();
    rope->style = style;
    rope->frequencies =
        rope_frequencies(dimensions, config_.positive("rope.freq_base", 10000.0), scaling, factors);
    rope->magnitude = rope_magnitude(scaling);
    return rope;
}

Vector DecoderBuilder::norm(std::int64_t layer, std::string_view name) {
    return tensors_.vector(TensorBinder::layer(layer, name) + ".weight", embedding());
}

std::unique_ptr<Mixer> DecoderBuilder::gqa(std::int64_t layer, const GqaTraits& traits,
                                           std::shared_ptr<const Rope> rope) {
    const auto [heads, kv_heads, key_width, value_width] = head_shape();
    const auto name = [&](std::string_view part) { return TensorBinder::layer(layer, part); };
    const std::int64_t query_rows = heads * key_width * (traits.gated ? 2 : 1);
    const std::int64_t key_rows = kv_heads * key_width;
    const std::int64_t value_rows = kv_heads * value_width;
    const std::int64_t fused_rows = query_rows + key_rows + value_rows;
    const auto part = [&](std::string_view base, std::int64_t begin, std::int64_t rows) {
        return tensors_.matrix_or_part(name(base), name("attn_qkv"), fused_rows, begin, embedding(), rows);
    };
    Gqa::Weights weights{.query = part("attn_q", 0, query_rows),
                         .key = part("attn_k", query_rows, key_rows),
                         .value = part("attn_v", query_rows + key_rows, value_rows),
                         .output = tensors_.matrix(name("attn_output"), heads * value_width, embedding()),
                         .query_norm = {},
                         .key_norm = {},
                         .sinks = {}};
    const auto bind_norm = [&](std::string_view base, std::int64_t size) {
        const std::string full = name(base) + ".weight";
        return traits.norm_required ? tensors_.vector(full, size) : tensors_.optional_vector(full, size);
    };
    if (traits.norm != GqaTraits::Norm::None) {
        const bool per_head = traits.norm == GqaTraits::Norm::PerHead;
        weights.query_norm = bind_norm("attn_q_norm", per_head ? key_width : heads * key_width);
        weights.key_norm = bind_norm("attn_k_norm", per_head ? key_width : key_rows);
    }
    if (traits.sinks) weights.sinks = tensors_.vector(name("attn_sinks.weight"), heads);
    const double scale = config_.positive_or_zero("attention.scale", 0.0);
    const Gqa::Shape shape{
        .heads = heads,
        .kv_heads = kv_heads,
        .key_width = key_width,
        .value_width = value_width,
        .scale = static_cast<float>(scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(key_width)) : scale),
        .window = traits.window,
        .gated = traits.gated};
    return std::make_unique<Gqa>(model_->workspace, shape, std::move(weights), std::move(rope),
                                 model_->config.epsilon);
}

bool DecoderBuilder::has_prediction(std::int64_t layer) const {
    return tensors_.has(TensorBinder::layer(layer, "nextn.eh_proj"));
}

void DecoderBuilder::add_prediction(std::int64_t index, Layer layer) {
    const auto name = [&](std::string_view part) { return TensorBinder::layer(index, part); };
    model_->predictions.push_back(
        {.projection = tensors_.matrix(name("nextn.eh_proj"), 2 * embedding(), embedding()),
         .embedding_norm = norm(index, "nextn.enorm"),
         .hidden_norm = norm(index, "nextn.hnorm"),
         .layer = std::move(layer),
         .head_norm = tensors_.optional_vector(name("nextn.shared_head_norm.weight"), embedding())});
}

std::unique_ptr<Model> DecoderBuilder::finish() {
    Model& m = *model_;
    m.token_embedding = tensors_.matrix("token_embd", embedding(), 0);
    m.config.vocabulary = m.token_embedding.rows;
    m.output_norm = tensors_.vector("output_norm.weight", embedding());
    m.output = tensors_.has("output") ? tensors_.matrix("output", embedding(), m.config.vocabulary)
                                      : m.token_embedding;
    m.residual = m.workspace.declare("residual", embedding());
    m.normed = m.workspace.declare("normed", embedding());
    m.branch = m.workspace.declare("branch", embedding());
    m.extents.embedding = embedding();
    m.extents.vocabulary = m.config.vocabulary;
    for (std::int64_t i = m.config.layers; i < m.config.layers + m.config.prediction_layers; ++i) {
        tensors_.skip_prefix(TensorBinder::layer(i, ""));
    }
    for (const std::string& tensor : tensors_.unused()) {
        log::warn("{}: tensor '{}' is not known for architecture '{}' and is ignored",
                  config_.metadata().file(), tensor, m.config.architecture);
    }
    return std::move(model_);
}

}  // namespace coterie::models
