#pragma once

#include "models/layer_ops.h"

namespace coterie::engine {

/// Consecutive layers [begin, end) of a model.
struct LayerRange {
    int begin = 0;
    int end = 0;

    bool contains(int layer) const { return layer >= begin && layer < end; }
    int size() const { return end - begin; }
};

/// The part of a forward pass that belongs to some of the layers: passes their operations on and leaves all
/// others out. Embedding belongs to the first layer of the model, logits to the last. For one pass.
class RangeOps final : public models::LayerOps {
  public:
    /// `layers`: of the whole model.
    RangeOps(models::LayerOps& target, LayerRange range, int layers)
        : target_(target), range_(range), layers_(layers) {}

    void embed(const models::Matrix& table, models::Value out) override;
    void rms_norm(models::Value x, const models::Vector& weight, float epsilon, models::Value out) override;
    void project(models::Value x, std::span<const models::Projection> projections) override;
    void project_heads(const models::ExpertMatrix& weight, models::Value x, std::int64_t x_stride,
                       std::int64_t x_offset, models::Value out, std::int64_t out_stride) override;
    void add(models::Value x, models::Value y) override;
    void rope(models::Value x, std::int64_t head_width, std::int64_t offset,
              const models::Rope& rope) override;
    void copy_heads(models::Value x, std::int64_t x_stride, std::int64_t x_offset, models::Value out,
                    std::int64_t out_stride, std::int64_t out_offset, std::int64_t width,
                    std::int64_t heads) override;
    void attention(int layer, const models::Attention& attention, models::Value queries, models::Value keys,
                   models::Value values, models::Value out) override;
    void sigmoid_gate(models::Value x, models::Value gate) override;
    void delta_net(int layer, const models::DeltaNet& mixer, models::Value qkv, models::Value gate,
                   models::Value beta, models::Value alpha, models::Value out) override;
    void dense_ffn(const models::DenseFfn& ffn, models::Value x, models::Value out) override;
    void moe_ffn(int layer, const models::MoeFfn& ffn, models::Value x, models::Value out) override;
    void layer_done(int layer, models::Value residual) override;
    void logits(models::Value x, const models::Vector& norm, float epsilon,
                const models::Matrix& output) override;

  private:
    bool here() const { return range_.contains(layer_); }

    models::LayerOps& target_;
    const LayerRange range_;
    const int layers_;
    int layer_ = 0;  ///< that the pass has come to
};

}  // namespace coterie::engine
