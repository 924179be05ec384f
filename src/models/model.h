#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/aligned_buffer.h"
#include "kv_cache/state_layout.h"
#include "models/layer_ops.h"

namespace coterie::models {

/// What every architecture has, read once from the file and fixed.
struct ModelConfig {
    std::string architecture;
    std::string name;
    std::int64_t layers = 0;             ///< of the trunk
    std::int64_t prediction_layers = 0;  ///< next-token-prediction blocks behind it
    std::int64_t embedding = 0;
    std::int64_t vocabulary = 0;
    std::int64_t context = 0;  ///< positions the model was trained for
    float epsilon = 0.0f;      ///< of the RMS norms
    std::int64_t experts = 0;
    std::int64_t experts_used = 0;
};

/// The element types of a KV cache.
struct CacheFormat {
    cpu::CacheType keys = cpu::CacheType::F16;
    cpu::CacheType values = cpu::CacheType::F16;
};

/// What mixes tokens in a layer: a kind of attention or a recurrence.
class Mixer {
  public:
    virtual ~Mixer() = default;
    virtual void forward(LayerOps& ops, int layer, Value in, Value out) const = 0;
    virtual LayerState state(const CacheFormat& format) const = 0;
};

/// A pre-norm decoder layer: h = x + mixer(norm(x)), y = h + ffn(norm(h)).
struct Layer {
    Vector mixer_norm;
    std::unique_ptr<Mixer> mixer;
    Vector ffn_norm;
    std::variant<DenseFfn, MoeFfn> ffn;
};

/// A next-token-prediction block: bound and checked, not run so far.
struct PredictionBlock {
    Matrix projection;  ///< [norm(embedding) | norm(hidden)] -> embedding
    Vector embedding_norm;
    Vector hidden_norm;
    Layer layer;
    Vector head_norm;  ///< empty: the output norm
};

/// A loaded decoder, immutable once built. Its weights are views of the file's bytes, which must outlive it.
struct Model {
    ModelConfig config;
    Workspace workspace;
    Extents extents;
    Matrix token_embedding;
    std::vector<Layer> layers;
    Vector output_norm;
    Matrix output;

    /// One step through all layers, in words that say what is computed and not where.
    void forward(LayerOps& ops) const;

    /// What a sequence of this model keeps, layer by layer.
    StateLayout state_layout(const CacheFormat& format) const;

    Value residual;  ///< scratch of `forward`: [embedding] each
    Value normed;
    Value branch;

    std::vector<PredictionBlock> predictions;
    std::vector<AlignedBuffer<float>> derived;  ///< weights that had to be rearranged at load
};

}  // namespace coterie::models
