#pragma once

#include <cstdint>
#include <memory>

#include "models/layer_ops.h"

namespace coterie::models {

class ConfigReader;

/// How positions beyond the trained length are reached.
struct RopeScaling {
    enum class Kind { None, Linear, Yarn };
    Kind kind = Kind::None;
    double factor = 1.0;
    std::int64_t original_context = 0;
    double extrapolation = 1.0;
    double attention_factor = 1.0;
    double beta_fast = 32.0;
    double beta_slow = 1.0;
};

/// Reads `<architecture>.rope.scaling.*`. Throws InvalidFile or Unsupported naming the key.
RopeScaling read_rope_scaling(const ConfigReader& config);

/// Frequencies base^(-2 i / dimensions), divided by `factors` where given, and scaled: linear divides by the
/// factor; YaRN (Peng et al. 2023) blends per pair between both, with the correction range rounded outwards.
std::vector<double> rope_frequencies(std::int64_t dimensions, double base, const RopeScaling& scaling,
                                     const Vector& factors);

/// YaRN's growth of cosines and sines: attention_factor * (1 + 0.1 ln factor); 1 without YaRN.
double rope_magnitude(const RopeScaling& scaling);

}  // namespace coterie::models
