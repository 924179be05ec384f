#pragma once

#include <memory>

#include "models/model.h"

namespace coterie::models {

/// Grouped-query attention with rope: q, k, v projections, optional norms of q and k (per head or over the
/// whole row), optional sinks, sliding window and output gate.
class Gqa final : public Mixer {
  public:
    struct Weights {
        Matrix query;  ///< with an output gate: per head [query | gate]
        Matrix key;
        Matrix value;
        Matrix output;
        Vector query_norm;  ///< [head width] or [heads * head width]; empty: none
        Vector key_norm;
        Vector sinks;  ///< [heads]; empty: none
    };
    struct Shape {
        std::int64_t heads;
        std::int64_t kv_heads;
        std::int64_t key_width;
        std::int64_t value_width;
        float scale;
        std::int64_t window = 0;  ///< 0: all positions
        bool gated = false;       ///< output times sigmoid(gate), before the output projection
    };

    Gqa(Workspace& workspace, const Shape& shape, Weights weights, std::shared_ptr<const Rope> rope,
        float epsilon);

    void forward(LayerOps& ops, int layer, Value in, Value out) const override;
    LayerState state(const CacheFormat& format) const override;

  private:
    Shape shape_;
    Weights weights_;
    std::shared_ptr<const Rope> rope_;
    float epsilon_;
    Value queries_, keys_, values_, heads_out_;
    Value queries_and_gates_, gates_;  ///< only where gated
};

}  // namespace coterie::models
