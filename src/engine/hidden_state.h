#pragma once

#include <cstdint>
#include <span>

#include "models/model.h"

namespace coterie::engine {

/// What the model makes of a token before the output matrix: the last layer's residual, normalised. For
/// observers of `layer_done` that make embeddings.
/// residual: [embedding]; out: [embedding].
void final_hidden_state(const models::Model& model, const float* residual, std::span<float> out);

}  // namespace coterie::engine
