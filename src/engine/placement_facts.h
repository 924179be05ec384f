#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "expert_cache/placement/facts.h"
#include "models/model.h"

namespace coterie::engine {

/// Experts of equal types and shapes.
struct ExpertKind {
    std::string name;                ///< "Q4_K, Q4_K, Q6_K 768 x 2048": gate, up, down and their shape
    std::int64_t multiply_adds = 0;  ///< per token
};

ExpertKind expert_kind(const models::MoeFfn& ffn);

/// What a placement needs to know of a model.
struct PlacementFacts {
    expert_cache::ModelFacts model;
    std::vector<ExpertKind> kinds;         ///< LayerFacts::kind counts these
    std::int64_t dense_multiply_adds = 0;  ///< per token, of all layers but their routed experts
};

struct PlacementSetting {
    models::CacheFormat cache;
    std::int64_t batch;      ///< tokens of the largest step: a prompt's window, or -b
    std::int64_t snapshots;  ///< recurrent states kept beside the current one
};

/// Reads no weights.
PlacementFacts placement_facts(const models::Model& model, const PlacementSetting& setting);

}  // namespace coterie::engine
