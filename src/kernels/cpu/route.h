#pragma once

#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace coterie::cpu {

enum class Gating { Softmax, Sigmoid, SoftmaxOfSelected };

/// How a router turns its logits into experts and weights.
struct Routing {
    Gating gating = Gating::Softmax;
    std::int64_t experts = 0;
    std::int64_t used = 0;
    std::int64_t groups = 1;       ///< experts lie in this many equal groups ...
    std::int64_t groups_used = 1;  ///< ... of which only the best take part
    bool normalise = false;        ///< selected weights are divided by their sum
    float scale = 1.0f;
};

/// Chooses `routing.used` experts for one token, best first, and their weights.
///
/// p = softmax(logits) | sigmoid(logits) | logits; s = p + selection_bias (null: none); a group's score is
/// the sum of its two best s, groups outside the best `groups_used` drop out; the experts are the `used` best
/// s, ties to the lower index. w = p of the chosen (softmax over them for SoftmaxOfSelected), / max(sum
/// w, 6.1035e-5) where normalised, the sum taken in rank order, * scale. The ids are always valid and
/// distinct, whatever the logits hold. `scratch` has room for 2 * experts + groups floats.
void route(const KernelTable& kernels, const Routing& routing, const float* logits,
           const float* selection_bias, float* scratch, std::int32_t* experts, float* weights);

}  // namespace coterie::cpu
