#include "engine/forward/layer_range.h"

namespace coterie::engine {

using models::Matrix;
using models::Value;
using models::Vector;

void RangeOps::embed(const Matrix& table, Value out) {
    if (here()) target_.embed(table, out);
}

void RangeOps::rms_norm(Value x, const Vector& weight, float epsilon, Value out) {
    if (here()) target_.rms_norm(x, weight, epsilon, out);
}

void RangeOps::project(Value x, std::span<const models::Projection> projections) {
    if (here()) target_.project(x, projections);
}

void RangeOps::project_heads(const models::ExpertMatrix& weight, Value x, std::int64_t x_stride,
                             std::int64_t x_offset, Value out, std::int64_t out_stride) {
    if (here()) target_.project_heads(weight, x, x_stride, x_offset, out, out_stride);
}

void RangeOps::add(Value x, Value y) {
    if (here()) target_.add(x, y);
}

void RangeOps::rope(Value x, std::int64_t head_width, std::int64_t offset, const models::Rope& rope) {
    if (here()) target_.rope(x, head_width, offset, rope);
}

void RangeOps::copy_heads(Value x, std::int64_t x_stride, std::int64_t x_offset, Value out,
                          std::int64_t out_stride, std::int64_t out_offset, std::int64_t width,
                          std::int64_t heads) {
    if (here()) target_.copy_heads(x, x_stride, x_offset, out, out_stride, out_offset, width, heads);
}

void RangeOps::attention(int layer, const models::Attention& attention, Value queries, Value keys,
                         Value values, Value out) {
    if (here()) target_.attention(layer, attention, queries, keys, values, out);
}

void RangeOps::sigmoid_gate(Value x, Value gate) {
    if (here()) target_.sigmoid_gate(x, gate);
}

void RangeOps::delta_net(int layer, const models::DeltaNet& mixer, Value qkv, Value gate, Value beta,
                         Value alpha, Value out) {
    if (here()) target_.delta_net(layer, mixer, qkv, gate, beta, alpha, out);
}

void RangeOps::dense_ffn(const models::DenseFfn& ffn, Value x, Value out) {
    if (here()) target_.dense_ffn(ffn, x, out);
}

void RangeOps::moe_ffn(int layer, const models::MoeFfn& ffn, Value x, Value out) {
    if (here()) target_.moe_ffn(layer, ffn, x, out);
}

void RangeOps::layer_done(int layer, Value residual) {
    if (here()) target_.layer_done(layer, residual);
    layer_ = layer + 1;
}

void RangeOps::logits(Value x, const Vector& norm, float epsilon, const Matrix& output) {
    if (range_.end == layers_) target_.logits(x, norm, epsilon, output);
}

}  // namespace coterie::engine
