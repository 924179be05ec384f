#pragma once

#include <memory>
#include <string>

#include "gguf/archive.h"
#include "models/model.h"

namespace coterie::models {

/// Builds the model that a file holds. Throws Unsupported for an unknown `general.architecture`, listing what
/// is supported, and InvalidFile for missing keys and tensors. `archive` must outlive the model.
std::unique_ptr<Model> build_model(const gguf::Archive& archive);

/// "deepseek2, glm4moe, ...": for messages and help.
std::string supported_architectures();

}  // namespace coterie::models
