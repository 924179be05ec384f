#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace coterie::synth {

/// A token with a role, at the id that the real model gives it.
struct SpecialToken {
    enum class Role { None, Bos, Eos, Eot };
    std::int64_t id;
    std::string_view text;
    Role role = Role::None;
};

/// What a synthetic file copies of a model: sizes, names of tensors and keys. Values of all layers are equal
/// but for the leading dense ones.
struct Shape {
    enum class QueryKeyNorm { None, PerHead, WholeRow };

    std::string_view name;          ///< as in `coterie synth NAME`
    std::string_view architecture;  ///< `general.architecture`
    std::int64_t layers;            ///< of the trunk
    std::int64_t prediction_layers = 0;
    std::int64_t embedding;
    std::int64_t vocabulary;
    std::int64_t context;
    float epsilon;

    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_width;
    QueryKeyNorm query_key_norm = QueryKeyNorm::None;
    bool query_key_value_bias = false;
    bool attention_output_bias = false;
    bool sinks = false;
    std::int64_t window = 0;  ///< 0: the model has no sliding window
    std::int64_t rope_dimensions;
    float rope_base;
    float yarn_factor = 0.0f;  ///< 0: positions are not scaled
    std::int64_t yarn_original_context = 0;

    std::int64_t leading_dense = 0;  ///< layers with a dense network in front
    std::int64_t dense_ffn = 0;      ///< width of that network; `feed_forward_length`
    std::int64_t experts;
    std::int64_t experts_used;
    std::int64_t expert_ffn;
    std::int64_t shared_experts = 0;
    std::int64_t gating = 0;      ///< `expert_gating_func`; 0: the key is left out
    bool selection_bias = false;  ///< `exp_probs_b`
    bool router_bias = false;
    bool expert_bias = false;
    std::string_view ffn_norm = "ffn_norm";  ///< the norm before the feed-forward network

    std::string_view pre_tokenizer;
    std::span<const SpecialToken> special_tokens;

    /// Queries per key head.
    std::int64_t group_size() const { return heads / kv_heads; }
    /// Whether `feed_forward_length` is the width of an expert.
    bool expert_width_in_dense_key() const { return architecture == "olmoe" || architecture == "llama"; }
};

/// The named models, then small ones of the same architectures for tests ("tiny-...").
std::span<const Shape> all_shapes();

/// Throws InvalidArgument listing the names where there is no such shape.
const Shape& find_shape(std::string_view name);

}  // namespace coterie::synth
