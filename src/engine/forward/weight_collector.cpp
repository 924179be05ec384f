#include "engine/forward/weight_collector.h"

#include <algorithm>

#include "engine/forward/device_forward.h"
#include "models/model.h"

namespace coterie::engine {
namespace {

using models::Matrix;
using models::Value;

/// Computes nothing and writes down what is asked for.
class Collector final : public models::LayerOps {
  public:
    WeightList list;

    void embed(const Matrix&, Value) override {}
    void rms_norm(Value, const models::Vector& weight, float, Value) override { add_vector(weight); }
    void project(Value, std::span<const models::Projection> projections) override {
        for (const models::Projection& projection : projections) add_matrix(projection.weight);
    }
    void project_heads(const models::ExpertMatrix&, Value, std::int64_t, std::int64_t, Value,
                       std::int64_t) override {
        refuse("products per head (MLA)");
    }
    void add(Value, Value) override {}
    void rope(Value, std::int64_t, std::int64_t, const models::Rope& rope) override {
        if (std::find(list.ropes.begin(), list.ropes.end(), &rope) == list.ropes.end())
            list.ropes.push_back(&rope);
    }
    void copy_heads(Value, std::int64_t, std::int64_t, Value, std::int64_t, std::int64_t, std::int64_t,
                    std::int64_t) override {
        refuse("rearranged heads (MLA, gated attention)");
    }
    void attention(int, const models::Attention& attention, Value, Value, Value values, Value) override {
        if (values.index < 0) refuse("attention over compressed rows (MLA)");
        list.most_heads = std::max(list.most_heads, attention.heads);
        list.widest_value = std::max({list.widest_value, attention.key_width, attention.value_width});
        if (attention.sinks != nullptr) add_vector(*attention.sinks);
    }
    void sigmoid_gate(Value, Value) override { refuse("gated attention"); }
    void delta_net(int, const models::DeltaNet&, Value, Value, Value, Value, Value) override {
        refuse("gated delta nets");
    }
    void dense_ffn(const models::DenseFfn& ffn, Value, Value) override { add_ffn(ffn); }
    void moe_ffn(int, const models::MoeFfn& ffn, Value, Value) override {
        current_ = &ffn;
        add_matrix(ffn.router);
        add_vector(ffn.selection_bias);
        for (const models::ExpertMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) {
            add_vector(matrix->scales);
            add_vector(matrix->bias);
        }
        list.widest_expert = std::max(list.widest_expert, ffn.down.columns);
        if (ffn.shared) add_ffn(*ffn.shared);
        if (ffn.shared_gate) add_matrix(*ffn.shared_gate);
    }
    void layer_done(int layer, Value) override {
        list.experts.resize(static_cast<std::size_t>(layer));
        list.experts.push_back(current_);
        current_ = nullptr;
    }
    void logits(Value, const models::Vector& norm, float, const Matrix& output) override {
        add_vector(norm);
        add_matrix(output);
    }

  private:
    void refuse(const char* operation) {
        if (list.unsupported.empty()) list.unsupported = operation;
    }
    void add_vector(const models::Vector& vector) {
        if (!vector.empty()) list.vectors.push_back(&vector);
    }
    void add_matrix(const Matrix& matrix) {
        list.matrices.push_back(&matrix);
        add_vector(matrix.bias);
    }
    void add_ffn(const models::DenseFfn& ffn) {
        for (const Matrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) add_matrix(*matrix);
        list.widest_dense = std::max(list.widest_dense, ffn.down.columns);
    }

    const models::MoeFfn* current_ = nullptr;
};

}  // namespace

WeightList collect_weights(const models::Model& model) {
    return collect_weights(model, {0, static_cast<int>(model.layers.size())});
}

WeightList collect_weights(const models::Model& model, LayerRange layers) {
    Collector collector;
    RangeOps range(collector, layers, static_cast<int>(model.layers.size()));
    model.forward(range);
    collector.list.experts.resize(model.layers.size());
    return std::move(collector.list);
}

std::uint64_t total_bytes(const WeightList& list) {
    std::uint64_t bytes = 0;
    for (const models::Matrix* matrix : list.matrices) bytes += static_cast<std::uint64_t>(matrix->bytes());
    for (const models::Vector* vector : list.vectors) bytes += vector->size() * sizeof(float);
    return bytes;
}

std::string unsupported_on_device(const models::Model& model) { return collect_weights(model).unsupported; }

}  // namespace coterie::engine
