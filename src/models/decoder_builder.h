#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "models/blocks/gqa.h"
#include "models/blocks/rope.h"
#include "models/config_reader.h"
#include "models/model.h"
#include "models/tensor_binder.h"

namespace coterie::models {

/// What architectures' attention differs in; the rest comes from the file.
struct GqaTraits {
    enum class Norm { None, PerHead, WholeRow };
    Norm norm = Norm::None;     ///< of queries and keys
    bool norm_required = true;  ///< false: used where the file has it
    bool gated = false;
    std::int64_t window = 0;
    bool sinks = false;
};

/// The steps that architecture files share: config first, then weights, in the order of the forward pass.
class DecoderBuilder {
  public:
    explicit DecoderBuilder(const gguf::Archive& archive);

    const ConfigReader& config() const { return config_; }
    TensorBinder& tensors() { return tensors_; }
    Model& model() { return *model_; }
    const Model& model() const { return *model_; }
    std::int64_t embedding() const { return model_->config.embedding; }

    /// The rope of all layers; dimensions from `rope.dimension_count`, else the key width.
    std::shared_ptr<const Rope> rope(RopeStyle style);

    /// The attention of one layer ("attn_q", "attn_k", ... or fused "attn_qkv").
    std::unique_ptr<Mixer> gqa(std::int64_t layer, const GqaTraits& traits, std::shared_ptr<const Rope> rope);

    void add_layer(Layer layer) { model_->layers.push_back(std::move(layer)); }
    Vector norm(std::int64_t layer, std::string_view name);

    /// Binds the block's own tensors around a layer that the caller bound; nothing where the file lacks them.
    bool has_prediction(std::int64_t layer) const;
    void add_prediction(std::int64_t index, Layer layer);

    /// Binds embedding, output norm and output, fills in what depends on all layers, and warns of unused
    /// tensors.
    std::unique_ptr<Model> finish();

  private:
    struct HeadShape {
        std::int64_t heads, kv_heads, key_width, value_width;
    };
    HeadShape head_shape() const;

    ConfigReader config_;
    std::unique_ptr<Model> model_;
    TensorBinder tensors_;
};

}  // namespace coterie::models
