#include "synth/shape.h"

#include <array>
#include <string>

#include "base/error.h"

namespace coterie::synth {
namespace {

using Norm = Shape::QueryKeyNorm;
using Role = SpecialToken::Role;

constexpr SpecialToken kQwenTokens[] = {
    {151643, "<|endoftext|>", Role::Bos}, {151644, "<|im_start|>"}, {151645, "<|im_end|>", Role::Eos}};
constexpr SpecialToken kGlmTokens[] = {{151329, "<|endoftext|>", Role::Eos},
                                       {151331, "[gMASK]"},
                                       {151333, "<sop>"},
                                       {151335, "<|system|>"},
                                       {151336, "<|user|>", Role::Eot},
                                       {151337, "<|assistant|>"},
                                       {151338, "<|observation|>"}};
constexpr SpecialToken kOlmoeTokens[] = {{50279, "<|endoftext|>", Role::Eos}};
constexpr SpecialToken kGptOssTokens[] = {{199998, "<|startoftext|>", Role::Bos},
                                          {199999, "<|endoftext|>"},
                                          {200002, "<|return|>", Role::Eos},
                                          {200003, "<|constrain|>"},
                                          {200005, "<|channel|>"},
                                          {200006, "<|start|>"},
                                          {200007, "<|end|>"},
                                          {200008, "<|message|>"},
                                          {200012, "<|call|>"}};
// The real vocabulary has these first, where a byte-level one has its bytes.
constexpr SpecialToken kMixtralTokens[] = {{31998, "<s>", Role::Bos}, {31999, "</s>", Role::Eos}};
constexpr SpecialToken kTinyTokens[] = {{1023, "<|endoftext|>", Role::Eos}};

constexpr Shape kQwen3{.name = "qwen3-30b-a3b",
                       .architecture = "qwen3moe",
                       .layers = 48,
                       .embedding = 2048,
                       .vocabulary = 151936,
                       .context = 40960,
                       .epsilon = 1e-6f,
                       .heads = 32,
                       .kv_heads = 4,
                       .head_width = 128,
                       .query_key_norm = Norm::PerHead,
                       .rope_dimensions = 128,
                       .rope_base = 1e6f,
                       .dense_ffn = 6144,
                       .experts = 128,
                       .experts_used = 8,
                       .expert_ffn = 768,
                       .pre_tokenizer = "qwen2",
                       .special_tokens = kQwenTokens};

constexpr Shape kGlmAir{.name = "glm-4.5-air",
                        .architecture = "glm4moe",
                        .layers = 46,
                        .prediction_layers = 1,
                        .embedding = 4096,
                        .vocabulary = 151552,
                        .context = 131072,
                        .epsilon = 1e-5f,
                        .heads = 96,
                        .kv_heads = 8,
                        .head_width = 128,
                        .query_key_value_bias = true,
                        .rope_dimensions = 64,
                        .rope_base = 1e6f,
                        .leading_dense = 1,
                        .dense_ffn = 10944,
                        .experts = 128,
                        .experts_used = 8,
                        .expert_ffn = 1408,
                        .shared_experts = 1,
                        .gating = 2,
                        .selection_bias = true,
                        .ffn_norm = "post_attention_norm",
                        .pre_tokenizer = "glm4",
                        .special_tokens = kGlmTokens};

constexpr Shape kOlmoe{.name = "olmoe-1b-7b",
                       .architecture = "olmoe",
                       .layers = 16,
                       .embedding = 2048,
                       .vocabulary = 50304,
                       .context = 4096,
                       .epsilon = 1e-5f,
                       .heads = 16,
                       .kv_heads = 16,
                       .head_width = 128,
                       .query_key_norm = Norm::WholeRow,
                       .rope_dimensions = 128,
                       .rope_base = 1e4f,
                       .experts = 64,
                       .experts_used = 8,
                       .expert_ffn = 1024,
                       .pre_tokenizer = "olmo",
                       .special_tokens = kOlmoeTokens};

constexpr Shape kMixtral{.name = "mixtral-8x7b",
                         .architecture = "llama",
                         .layers = 32,
                         .embedding = 4096,
                         .vocabulary = 32000,
                         .context = 32768,
                         .epsilon = 1e-5f,
                         .heads = 32,
                         .kv_heads = 8,
                         .head_width = 128,
                         .rope_dimensions = 128,
                         .rope_base = 1e6f,
                         .experts = 8,
                         .experts_used = 2,
                         .expert_ffn = 14336,
                         .pre_tokenizer = "default",
                         .special_tokens = kMixtralTokens};

constexpr Shape gpt_oss(std::string_view name, std::int64_t layers, std::int64_t experts) {
    return {.name = name,
            .architecture = "gpt-oss",
            .layers = layers,
            .embedding = 2880,
            .vocabulary = 201088,
            .context = 131072,
            .epsilon = 1e-5f,
            .heads = 64,
            .kv_heads = 8,
            .head_width = 64,
            .query_key_value_bias = true,
            .attention_output_bias = true,
            .sinks = true,
            .window = 128,
            .rope_dimensions = 64,
            .rope_base = 150000.0f,
            .yarn_factor = 32.0f,
            .yarn_original_context = 4096,
            .dense_ffn = 2880,
            .experts = experts,
            .experts_used = 4,
            .expert_ffn = 2880,
            .router_bias = true,
            .expert_bias = true,
            .ffn_norm = "post_attention_norm",
            .pre_tokenizer = "gpt-4o",
            .special_tokens = kGptOssTokens};
}

/// The same architecture at a size that a test can run. The embedding keeps room beside the reserved
/// dimensions.
constexpr Shape tiny(Shape shape, std::string_view name) {
    shape.name = name;
    shape.layers = 3;
    shape.embedding = 768;
    shape.vocabulary = 1024;
    shape.context = 2048;
    shape.heads = 8;
    shape.kv_heads = shape.kv_heads == 16 ? 8 : 2;
    shape.head_width = 32;
    shape.rope_dimensions = shape.architecture == "glm4moe" ? 16 : 32;
    if (shape.yarn_original_context > 0) shape.yarn_original_context = 64;
    if (shape.window > 0) shape.window = 16;
    if (shape.dense_ffn > 0) shape.dense_ffn = 512;
    if (shape.experts > 8) shape.experts = 32;
    if (shape.experts_used > 4) shape.experts_used = 4;
    shape.expert_ffn = 256;
    shape.special_tokens = kTinyTokens;
    return shape;
}

constexpr std::array kShapes = {kQwen3,
                                kGlmAir,
                                kOlmoe,
                                kMixtral,
                                gpt_oss("gpt-oss-20b", 24, 32),
                                gpt_oss("gpt-oss-120b", 36, 128),
                                tiny(kQwen3, "tiny-qwen3moe"),
                                tiny(kGlmAir, "tiny-glm4moe"),
                                tiny(kOlmoe, "tiny-olmoe"),
                                tiny(kMixtral, "tiny-mixtral"),
                                tiny(gpt_oss("", 24, 32), "tiny-gpt-oss")};

}  // namespace

std::span<const Shape> all_shapes() { return kShapes; }

const Shape& find_shape(std::string_view name) {
    std::string known;
    for (const Shape& shape : kShapes) {
        if (shape.name == name) return shape;
        known += known.empty() ? "" : ", ";
        known += shape.name;
    }
    fail(ErrorCode::InvalidArgument, "no shape is named '{}'; choose one of {}", name, known);
}

}  // namespace coterie::synth
