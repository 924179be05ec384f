#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gguf/archive.h"

namespace coterie::gguf {

/// The routed experts of one layer, by the names of their tensors.
struct ExpertLayer {
    std::int64_t experts = 0;
    std::uint64_t bytes_per_expert = 0;  ///< of all matrices and biases of one expert
    std::map<std::string, std::string>
        types;  ///< "ffn_down" -> "Q6_K"; "Q4_K, Q6_K" where single experts differ
};

/// The layers that have experts, by layer number. Knows both namings: one tensor for all experts of a layer
/// (`blk.3.ffn_gate_exps.weight`) and the older one tensor per expert (`blk.3.ffn_gate.7.weight`).
std::map<std::int64_t, ExpertLayer> summarise_experts(const Archive& archive);

}  // namespace coterie::gguf
