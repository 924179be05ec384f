#include "models/token_cost.h"

namespace coterie::models {
namespace {

/// Computes nothing and adds up what would be read.
class CostCounter final : public LayerOps {
  public:
    TokenCost cost;

    void embed(const Matrix& table, Value) override { cost.embedding_bytes += table.row_bytes; }
    void project(Value, std::span<const Projection> projections) override {
        for (const Projection& projection : projections) add_dense(projection.weight);
    }
    void project_heads(const ExpertMatrix& weight, Value, std::int64_t, std::int64_t, Value,
                       std::int64_t) override {
        const auto heads = static_cast<std::int64_t>(weight.data.size());
        cost.dense_bytes += heads * weight.bytes_per_expert();
        cost.layer_multiply_adds += heads * weight.rows * weight.columns;
    }
    void dense_ffn(const DenseFfn& ffn, Value, Value) override { add_dense(ffn); }
    void moe_ffn(int, const MoeFfn& ffn, Value, Value) override {
        add_dense(ffn.router);
        if (ffn.shared) add_dense(*ffn.shared);
        if (ffn.shared_gate) add_dense(*ffn.shared_gate);
        for (const ExpertMatrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) {
            cost.expert_bytes += ffn.routing.used * matrix->bytes_per_expert();
            cost.layer_multiply_adds += ffn.routing.used * matrix->rows * matrix->columns;
        }
    }
    void logits(Value, const Vector&, float, const Matrix& output) override {
        cost.output_bytes += output.bytes();
        cost.output_multiply_adds += output.rows * output.columns;
    }

    // No weight matrices.
    void rms_norm(Value, const Vector&, float, Value) override {}
    void add(Value, Value) override {}
    void rope(Value, std::int64_t, std::int64_t, const Rope&) override {}
    void copy_heads(Value, std::int64_t, std::int64_t, Value, std::int64_t, std::int64_t, std::int64_t,
                    std::int64_t) override {}
    void attention(int, const Attention&, Value, Value, Value, Value) override {}
    void sigmoid_gate(Value, Value) override {}
    void delta_net(int, const DeltaNet&, Value, Value, Value, Value, Value) override {}

    void layer_done(int, Value) override {
        cost.layer_dense_bytes.push_back(cost.dense_bytes - before_layer_);
        before_layer_ = cost.dense_bytes;
    }

  private:
    void add_dense(const Matrix& matrix) {
        cost.dense_bytes += matrix.bytes();
        cost.layer_multiply_adds += matrix.rows * matrix.columns;
    }
    void add_dense(const DenseFfn& ffn) {
        for (const Matrix* matrix : {&ffn.gate, &ffn.up, &ffn.down}) add_dense(*matrix);
    }

    std::int64_t before_layer_ = 0;  ///< dense bytes
};

}  // namespace

TokenCost token_cost(const Model& model) {
    CostCounter counter;
    model.forward(counter);
    return counter.cost;
}

}  // namespace coterie::models
