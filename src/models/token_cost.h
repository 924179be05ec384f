#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace coterie::models {

/// What one token costs in weights: bytes read and multiply-adds done. Counted by a dry run of the forward
/// pass, so it holds for every architecture. Of a layer's experts only those used count; norms, biases and
/// the cache of keys and values do not.
struct TokenCost {
    std::int64_t embedding_bytes = 0;  ///< the token's row
    std::int64_t dense_bytes = 0;      ///< of all layers: mixers, routers, dense networks, shared experts
    std::int64_t expert_bytes = 0;     ///< of all layers: experts used
    std::int64_t output_bytes = 0;
    std::int64_t layer_multiply_adds = 0;
    std::int64_t output_multiply_adds = 0;
    std::vector<std::int64_t> layer_dense_bytes = {};  ///< [layers]: dense_bytes, layer by layer

    /// Read for a token that is computed alone and whose logits are wanted.
    std::int64_t decode_bytes() const { return embedding_bytes + dense_bytes + expert_bytes + output_bytes; }
    /// Floating-point operations of a prompt whose last token's logits are wanted.
    double prompt_operations(std::int64_t tokens) const {
        return 2.0 * (static_cast<double>(layer_multiply_adds) * static_cast<double>(tokens) +
                      static_cast<double>(output_multiply_adds));
    }
};

TokenCost token_cost(const Model& model);

}  // namespace coterie::models
