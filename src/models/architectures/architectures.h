#pragma once

#include <memory>

#include "models/decoder_builder.h"

/// One function per architecture, each in a file of its own: read and check the configuration, then bind the
/// weights.
namespace coterie::models {

std::unique_ptr<Model> build_deepseek2(DecoderBuilder& builder);
std::unique_ptr<Model> build_glm4moe(DecoderBuilder& builder);
std::unique_ptr<Model> build_gpt_oss(DecoderBuilder& builder);
std::unique_ptr<Model> build_llama(DecoderBuilder& builder);
std::unique_ptr<Model> build_olmoe(DecoderBuilder& builder);
std::unique_ptr<Model> build_qwen2moe(DecoderBuilder& builder);
std::unique_ptr<Model> build_qwen3(DecoderBuilder& builder);
std::unique_ptr<Model> build_qwen3moe(DecoderBuilder& builder);
std::unique_ptr<Model> build_qwen3next(DecoderBuilder& builder);

}  // namespace coterie::models
