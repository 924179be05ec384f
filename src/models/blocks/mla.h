#pragma once

#include <memory>

#include "models/model.h"

namespace coterie::models {

/// Multi-head latent attention in its absorbed form (DeepSeek-V2, V3): the cache holds per position the
/// normalised latent and the rotated shared key part; queries are carried into the latent space, so that all
/// heads attend over the same row, and the result is carried back per head.
class Mla final : public Mixer {
  public:
    struct Weights {
        std::optional<Matrix> query_down;  ///< with it query = query_up norm(query_down x), else query_up x
        Vector query_norm;
        Matrix query_up;        ///< per head [nope | rope]
        Matrix latent_down;     ///< [latent | rope]
        Vector latent_norm;     ///< [latent]
        ExpertMatrix key_up;    ///< per head: nope -> latent (the transposed up-projection)
        ExpertMatrix value_up;  ///< per head: latent -> value
        Matrix output;
    };
    struct Shape {
        std::int64_t heads;
        std::int64_t nope_width;
        std::int64_t rope_width;
        std::int64_t latent_width;
        std::int64_t value_width;
        float scale;
    };

    Mla(Workspace& workspace, const Shape& shape, Weights weights, std::shared_ptr<const Rope> rope,
        float epsilon);

    void forward(LayerOps& ops, int layer, Value in, Value out) const override;
    LayerState state(const CacheFormat& format) const override;

  private:
    std::int64_t row_width() const { return shape_.latent_width + shape_.rope_width; }

    Shape shape_;
    Weights weights_;
    std::shared_ptr<const Rope> rope_;
    float epsilon_;
    Value query_latent_, queries_, compressed_, latent_, row_, absorbed_, context_, heads_out_;
};

}  // namespace coterie::models
