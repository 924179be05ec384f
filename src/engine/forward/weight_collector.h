#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/forward/layer_range.h"
#include "models/model.h"

namespace coterie::engine {

/// Everything that a model's forward pass reads but routed experts, found by going through it once.
struct WeightList {
    std::vector<const models::Matrix*> matrices;  ///< but the token embedding
    std::vector<const models::Vector*> vectors;   ///< norms, sinks, biases
    std::vector<const models::Rope*> ropes;
    std::vector<const models::MoeFfn*> experts;  ///< [layers], null for dense ones and those left out
    std::int64_t widest_dense = 0;               ///< intermediate values of dense and shared networks
    std::int64_t widest_expert = 0;
    std::int64_t most_heads = 0;    ///< of attention
    std::int64_t widest_value = 0;  ///< of a head
    std::string unsupported;        ///< the first operation that devices do not have; else empty
};

WeightList collect_weights(const models::Model& model);
/// Of some layers only; the output's weights belong to the last one.
WeightList collect_weights(const models::Model& model, LayerRange layers);
/// Of everything on the list.
std::uint64_t total_bytes(const WeightList& list);

}  // namespace coterie::engine
