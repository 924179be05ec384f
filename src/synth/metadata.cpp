#include "synth/metadata.h"

#include <fmt/format.h>
#include <string>

namespace coterie::synth {
namespace {

/// Adds keys below "<architecture>.".
class Keys {
  public:
    Keys(gguf::Header& header, std::string_view prefix) : header_(header), prefix_(prefix) {}

    void count(std::string_view key, std::int64_t value) {
        header_.set(full(key), static_cast<std::uint32_t>(value));
    }
    void count_if_any(std::string_view key, std::int64_t value) {
        if (value != 0) count(key, value);
    }
    void number(std::string_view key, float value) { header_.set(full(key), value); }
    void text(std::string_view key, std::string_view value) { header_.set(full(key), value); }
    void flag(std::string_view key, bool value) { header_.set(full(key), value); }

  private:
    std::string full(std::string_view key) const { return fmt::format("{}.{}", prefix_, key); }

    gguf::Header& header_;
    std::string_view prefix_;
};

void set_attention_keys(Keys& keys, const Shape& shape) {
    keys.count("attention.head_count", shape.heads);
    keys.count("attention.head_count_kv", shape.kv_heads);
    keys.count("attention.key_length", shape.head_width);
    keys.count("attention.value_length", shape.head_width);
    keys.number("attention.layer_norm_rms_epsilon", shape.epsilon);
    keys.count_if_any("attention.sliding_window", shape.window);
    keys.count("rope.dimension_count", shape.rope_dimensions);
    keys.number("rope.freq_base", shape.rope_base);
    if (shape.yarn_factor == 0.0f) return;
    keys.text("rope.scaling.type", "yarn");
    keys.number("rope.scaling.factor", shape.yarn_factor);
    keys.count("rope.scaling.original_context_length", shape.yarn_original_context);
}

void set_expert_keys(Keys& keys, const Shape& shape) {
    keys.count("expert_count", shape.experts);
    keys.count("expert_used_count", shape.experts_used);
    keys.count_if_any("expert_shared_count", shape.shared_experts);
    keys.count_if_any("leading_dense_block_count", shape.leading_dense);
    if (shape.expert_width_in_dense_key()) {
        keys.count("feed_forward_length", shape.expert_ffn);
    } else {
        keys.count("feed_forward_length", shape.dense_ffn);
        keys.count("expert_feed_forward_length", shape.expert_ffn);
    }
    if (shape.gating == 0) return;
    keys.count("expert_gating_func", shape.gating);
    keys.flag("expert_weights_norm", true);
    keys.number("expert_weights_scale", 1.0f);
}

}  // namespace

void set_model_keys(gguf::Header& header, const Shape& shape, std::int64_t layers, const QuantMix& mix) {
    header.set("general.architecture", shape.architecture);
    header.set("general.type", std::string_view("model"));
    header.set("general.name", fmt::format("synthetic {} ({} of {} layers, {})", shape.name, layers,
                                           shape.layers, mix.name()));
    header.set("general.description",
               std::string_view("Random weights in the shapes of a real model, for benchmarks and tests"));
    header.set("general.file_type", mix.file_type());
    header.set("general.quantization_version", std::uint32_t{2});

    Keys keys(header, shape.architecture);
    keys.count("block_count", layers + shape.prediction_layers);
    keys.count_if_any("nextn_predict_layers", shape.prediction_layers);
    keys.count("context_length", shape.context);
    keys.count("embedding_length", shape.embedding);
    keys.count("vocab_size", shape.vocabulary);
    set_attention_keys(keys, shape);
    set_expert_keys(keys, shape);
}

}  // namespace coterie::synth
