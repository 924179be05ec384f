#include "synth/tensor_plan.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace coterie::synth {
namespace {

constexpr float kBiasRms = 0.02f;

/// What all branches of all layers may add to the mean square of the residual stream, which the embedding
/// starts at 1. An upper bound: attention averages over positions and experts over each other, so that about
/// a fifth of it comes true and a router's logits keep their size from the first layer to the last.
constexpr float kBranchVariance = 0.5f;

class Planner {
  public:
    Planner(const Shape& shape, std::int64_t layers, const QuantMix& mix)
        : shape_(shape),
          layers_(layers),
          mix_(mix),
          branch_rms_(std::sqrt(kBranchVariance / static_cast<float>(2 * layers))) {}

    std::vector<PlannedTensor> plan() {
        matrix("token_embd.weight", MatrixRole::TokenEmbedding, shape_.embedding, {shape_.vocabulary},
               Part::TokenEmbedding);
        tensors_.back().content = Content::Embedding;
        for (layer_ = 0; layer_ < layers_; ++layer_) {
            attention();
            feed_forward();
        }
        plan_prediction_blocks();
        layer_ = 0;
        norm("output_norm", shape_.embedding, Content::MixerNorm);
        matrix("output.weight", MatrixRole::Output, shape_.embedding, {shape_.vocabulary}, Part::Output);
        return std::move(tensors_);
    }

  private:
    std::string block(std::string_view base) const { return fmt::format("blk.{}.{}", layer_, base); }

    /// A random matrix that keeps the size of what it is given; `outer`: rows and, for experts, their number.
    void matrix(std::string name, MatrixRole role, std::int64_t columns, std::vector<std::int64_t> outer,
                Part part) {
        outer.insert(outer.begin(), columns);
        tensors_.push_back({.name = std::move(name),
                            .type = mix_.type_of(shape_, layers_, {role, layer_, columns}),
                            .dims = std::move(outer),
                            .content = Content::Random,
                            .rms = 1.0f / std::sqrt(static_cast<float>(columns)),
                            .part = part});
    }

    /// The last matrix of a branch: what it writes is added to the residual stream.
    void branch_end(std::string name, MatrixRole role, std::int64_t columns, std::vector<std::int64_t> outer,
                    Part part) {
        matrix(std::move(name), role, columns, std::move(outer), part);
        tensors_.back().rms *= branch_rms_;
        tensors_.back().writes_residual = true;
    }

    void vector(std::string name, std::vector<std::int64_t> dims, Content content, float rms, Part part) {
        tensors_.push_back({.name = std::move(name),
                            .type = DataType::F32,
                            .dims = std::move(dims),
                            .content = content,
                            .rms = rms,
                            .part = part});
    }

    void norm(std::string base, std::int64_t size, Content content) {
        vector(std::move(base) + ".weight", {size}, content, 0.0f, Part::Norms);
    }

    void attention() {
        const std::int64_t width = shape_.embedding;
        const std::int64_t query = shape_.heads * shape_.head_width;
        const std::int64_t key = shape_.kv_heads * shape_.head_width;
        norm(block("attn_norm"), width, Content::MixerNorm);
        matrix(block("attn_q.weight"), MatrixRole::Query, width, {query}, Part::Attention);
        matrix(block("attn_k.weight"), MatrixRole::Key, width, {key}, Part::Attention);
        matrix(block("attn_v.weight"), MatrixRole::Value, width, {key}, Part::Attention);
        if (shape_.query_key_value_bias) {
            vector(block("attn_q.bias"), {query}, Content::Random, kBiasRms, Part::Attention);
            vector(block("attn_k.bias"), {key}, Content::Random, kBiasRms, Part::Attention);
            vector(block("attn_v.bias"), {key}, Content::Random, kBiasRms, Part::Attention);
        }
        if (shape_.query_key_norm != Shape::QueryKeyNorm::None) {
            const bool per_head = shape_.query_key_norm == Shape::QueryKeyNorm::PerHead;
            norm(block("attn_q_norm"), per_head ? shape_.head_width : query, Content::Norm);
            norm(block("attn_k_norm"), per_head ? shape_.head_width : key, Content::Norm);
        }
        if (shape_.sinks) {
            vector(block("attn_sinks.weight"), {shape_.heads}, Content::Random, 1.0f, Part::Attention);
        }
        branch_end(block("attn_output.weight"), MatrixRole::AttentionOutput, query, {width}, Part::Attention);
        if (shape_.attention_output_bias) branch_bias(block("attn_output.bias"), {width}, Part::Attention);
    }

    void branch_bias(std::string name, std::vector<std::int64_t> dims, Part part) {
        vector(std::move(name), std::move(dims), Content::Random, kBiasRms * branch_rms_, part);
        tensors_.back().writes_residual = true;
    }

    void feed_forward() {
        norm(block(shape_.ffn_norm), shape_.embedding, Content::FfnNorm);
        if (layer_ < shape_.leading_dense) {
            dense("", shape_.dense_ffn, Part::DenseFfn);
            return;
        }
        router();
        experts();
        if (shape_.shared_experts > 0) {
            dense("_shexp", shape_.shared_experts * shape_.expert_ffn, Part::SharedExpert);
        }
    }

    void router() {
        vector(block("ffn_gate_inp.weight"), {shape_.embedding, shape_.experts}, Content::Router, 0.0f,
               Part::Router);
        if (shape_.router_bias) {
            vector(block("ffn_gate_inp.bias"), {shape_.experts}, Content::Zero, 0.0f, Part::Router);
        }
        if (shape_.selection_bias) {
            vector(block("exp_probs_b.bias"), {shape_.experts}, Content::Zero, 0.0f, Part::Router);
        }
    }

    void experts() {
        const std::int64_t width = shape_.embedding;
        const std::int64_t ffn = shape_.expert_ffn;
        const std::int64_t count = shape_.experts;
        matrix(block("ffn_gate_exps.weight"), MatrixRole::ExpertGate, width, {ffn, count}, Part::Experts);
        matrix(block("ffn_up_exps.weight"), MatrixRole::ExpertUp, width, {ffn, count}, Part::Experts);
        branch_end(block("ffn_down_exps.weight"), MatrixRole::ExpertDown, ffn, {width, count}, Part::Experts);
        if (!shape_.expert_bias) return;
        vector(block("ffn_gate_exps.bias"), {ffn, count}, Content::Random, kBiasRms, Part::Experts);
        vector(block("ffn_up_exps.bias"), {ffn, count}, Content::Random, kBiasRms, Part::Experts);
        branch_bias(block("ffn_down_exps.bias"), {width, count}, Part::Experts);
    }

    void dense(std::string_view suffix, std::int64_t ffn, Part part) {
        const auto full = [&](std::string_view base) {
            return block(fmt::format("{}{}.weight", base, suffix));
        };
        matrix(full("ffn_gate"), MatrixRole::FfnGate, shape_.embedding, {ffn}, part);
        matrix(full("ffn_up"), MatrixRole::FfnUp, shape_.embedding, {ffn}, part);
        branch_end(full("ffn_down"), MatrixRole::FfnDown, ffn, {shape_.embedding}, part);
    }

    /// A block behind the trunk: a layer and what joins the next token's embedding with the hidden state. Its
    /// input has nothing in the reserved dimensions, so its router treats all experts alike.
    void plan_prediction_blocks() {
        const std::size_t first = tensors_.size();
        for (; layer_ < layers_ + shape_.prediction_layers; ++layer_) {
            attention();
            feed_forward();
            matrix(block("nextn.eh_proj.weight"), MatrixRole::PredictionProjection, 2 * shape_.embedding,
                   {shape_.embedding}, Part::Prediction);
            tensors_.back().writes_residual = true;
            norm(block("nextn.enorm"), shape_.embedding, Content::Norm);
            norm(block("nextn.hnorm"), shape_.embedding, Content::Norm);
            norm(block("nextn.shared_head_norm"), shape_.embedding, Content::Norm);
        }
        for (std::size_t i = first; i < tensors_.size(); ++i) tensors_[i].part = Part::Prediction;
    }

    const Shape& shape_;
    std::int64_t layers_;
    const QuantMix& mix_;
    float branch_rms_;
    std::int64_t layer_ = 0;
    std::vector<PlannedTensor> tensors_;
};

}  // namespace

std::string_view name(Part part) {
    constexpr std::string_view kNames[kParts] = {"token embedding", "output",         "attention",
                                                 "dense networks",  "shared experts", "experts",
                                                 "routers",         "norms",          "prediction block"};
    return kNames[static_cast<int>(part)];
}

std::vector<PlannedTensor> plan_tensors(const Shape& shape, std::int64_t layers, const QuantMix& mix) {
    return Planner(shape, layers, mix).plan();
}

}  // namespace coterie::synth
