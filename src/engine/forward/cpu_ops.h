#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "engine/forward/activation_store.h"
#include "engine/forward/expert_pass.h"
#include "engine/forward/rope_tables.h"
#include "engine/forward/step.h"
#include "kernels/cpu/kernels.h"
#include "models/layer_ops.h"

namespace coterie::engine {

class HybridExperts;

/// The largest steps that will come; with the model's extents it decides what is allocated.
struct OpsLimits {
    std::int64_t max_tokens;       ///< rows of a step
    std::int64_t max_logits_rows;  ///< rows whose logits are formed at once
};

/// The operations of a forward pass on the CPU. Everything is allocated by the constructor.
///
/// Each operation is one parallel region (or plain code where a single token makes it shorter than a region's
/// start). Results do not depend on the number of threads or on what else is in the step: every number of a
/// row is computed by one thread in the law's order, from that row's own inputs.
class CpuOps final : public models::LayerOps {
  public:
    CpuOps(ThreadPool& pool, const models::Workspace& workspace, const models::Extents& extents,
           const OpsLimits& limits);

    /// From now on `hybrid` computes the routed experts; null: the CPU does.
    void attach(HybridExperts* hybrid) { hybrid_ = hybrid; }
    ExpertPass& expert_pass() { return expert_pass_; }

    /// The step that the following operations belong to. It must outlive them.
    void begin(const Step& step);

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
    std::int64_t rows() const { return static_cast<std::int64_t>(step_->tokens.size()); }
    std::int64_t stride(models::Value v) const { return strides_[static_cast<std::size_t>(v.index)]; }
    float* row(models::Value v, std::int64_t t) {
        return values_[static_cast<std::size_t>(v.index)].data() + t * stride(v);
    }

    /// Runs body(t) for every row, on all workers where `work` (floats touched) makes that worth a region.
    void for_rows(std::int64_t work, FunctionRef<void(std::int64_t)> body) {
        for_rows_of(rows(), work, body);
    }
    void for_rows_of(std::int64_t count, std::int64_t work, FunctionRef<void(std::int64_t)> body);
    /// Fills inputs_ with views of x's rows and, where `quantise`, their quantised form.
    void prepare_inputs(models::Value x, bool quantise);
    void router_logits(const models::MoeFfn& ffn);
    std::span<const std::int32_t> guess_next_layer(int layer);
    void route_tokens(int layer, const models::MoeFfn& ffn);
    void plan_experts(const models::MoeFfn& ffn);
    void add_shared_expert(const models::MoeFfn& ffn);
    void store_keys_values(int layer, const models::Attention& attention, models::Value keys,
                           models::Value values);
    void convolve(const models::DeltaNet& mixer, models::Value qkv, const StepSlice& slice, float* window);
    void normalise_heads(const models::DeltaNet& mixer, std::int64_t t);

    /// One worker's inputs of `project_heads`: a few tokens' part for one head, in both forms.
    struct HeadInputs {
        HeadInputs() = default;
        explicit HeadInputs(std::int64_t columns);
        void set(const cpu::KernelTable& kernels, std::int64_t i, std::span<const float> input);

        AlignedBuffer<float> values;
        ActivationStore quants;
        std::vector<ActivationRow> rows;
        std::int64_t stride = 0;
    };

    ThreadPool& pool_;
    const cpu::KernelTable& kernels_;
    const models::Extents extents_;
    const OpsLimits limits_;
    const Step* step_ = nullptr;
    std::vector<std::int64_t> positions_;  ///< [rows]
    std::vector<std::int32_t> slice_of_;   ///< [rows]
    RopeTables rope_tables_;

    std::vector<AlignedBuffer<float>> values_;  ///< one per declared Value, [max_tokens][stride]
    std::vector<std::int64_t> strides_;         ///< whole groups, the padding stays zero
    ActivationStore quantised_;
    std::vector<ActivationRow> inputs_;  ///< [max_tokens]
    TaskQueue queue_;

    ExpertPass expert_pass_;
    HybridExperts* hybrid_ = nullptr;
    ExpertPlan plan_;
    AlignedBuffer<float> router_logits_;       ///< [max_tokens][experts]
    AlignedBuffer<float> router_scratch_;      ///< [max_tokens][3 * experts]
    std::vector<std::int32_t> chosen_;         ///< [max_tokens][used]
    std::vector<float> chosen_weights_;        ///< [max_tokens][used]
    std::vector<std::int32_t> guessed_;        ///< as chosen_, of the next layer
    std::vector<float> guessed_weights_;       ///< as chosen_weights_
    std::vector<float> shared_weights_;        ///< [max_tokens]
    std::vector<std::int64_t> expert_counts_;  ///< [experts + 1]

    AlignedBuffer<float> convolved_;       ///< [max_tokens][channels]
    std::vector<HeadInputs> head_inputs_;  ///< [workers]

    AlignedBuffer<float> logits_input_;  ///< [max_logits_rows][embedding]
    AlignedBuffer<float> logits_;        ///< [max_logits_rows][vocabulary]
};

}  // namespace coterie::engine
