#pragma once

#include "models/model.h"

namespace coterie::models {

/// The gated delta net mixer (Qwen3-Next): projections, short convolution, delta rule, gated norm, output
/// projection.
class GatedDeltaNet final : public Mixer {
  public:
    struct Weights {
        Matrix qkv;  ///< [q | k | v]
        Matrix gate;
        std::optional<Matrix> fused;  ///< older files, instead of both: per key head [q | k | v | gate]
        Matrix beta_alpha;   ///< per key head [beta | alpha], one of each for each of its value heads
        Vector convolution;  ///< [kernel][channels]
        Vector decay;
        Vector step_bias;
        Vector norm;
        Matrix output;
    };
    struct Shape {
        std::int64_t key_heads;
        std::int64_t value_heads;
        std::int64_t head_width;
        std::int64_t kernel;
        float epsilon;
    };

    GatedDeltaNet(Workspace& workspace, const Shape& shape, Weights weights);
    GatedDeltaNet(const GatedDeltaNet&) = delete;  // mixer_ refers to weights_
    GatedDeltaNet& operator=(const GatedDeltaNet&) = delete;

    void forward(LayerOps& ops, int layer, Value in, Value out) const override;
    LayerState state(const CacheFormat& format) const override;

  private:
    void split_fused(LayerOps& ops) const;

    Weights weights_;
    DeltaNet mixer_;
    Value qkv_, gate_, fused_, beta_alpha_, beta_, alpha_, mixed_;
};

}  // namespace coterie::models
