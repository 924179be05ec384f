#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "engine/forward/cuda/device_weights.h"
#include "engine/forward/cuda/host_mailbox.h"
#include "engine/forward/cuda/link_path.h"
#include "engine/forward/cuda/resident_table.h"
#include "engine/forward/cuda/step_block.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/moe.h"
#include "kv_cache/page_memory.h"
#include "kv_cache/state_layout.h"
#include "models/model.h"

namespace coterie::engine {

/// Steps up to so many tokens are windows: recorded once, and each page of attention has its own block.
inline constexpr std::int64_t kWindowTokens = 8;

/// The operations of a forward pass as kernels on a stream. A call queues; nothing has happened when it
/// returns. Used both to record a graph and to run steps that have none.
///
/// Small operations wait for what follows them: an addition for the norm that reads it, a norm for the
/// products that read it where those form it themselves, norms and rotations of queries and keys for the
/// attention. So a layer of routed experts takes six kernels in a step of one token: queries, keys and values
/// with their norm; attention; its output; the router with its norm; gate and up; down and the experts' sum.
class CudaOps final : public models::LayerOps {
  public:
    struct Parts {
        CudaDevice& device;
        CudaStream& stream;
        const models::Model& model;
        const WeightList& list;
        const DeviceWeights& weights;
        const HostMailbox& mailbox;
        const ResidentTable& residents;
        const LinkPath& link;
        LayerRange layers;  ///< whose operations come
    };
    CudaOps(const Parts& parts, DeviceArena& arena, std::int64_t max_tokens, std::int64_t logits_rows,
            std::int64_t context);

    /// Where the layers' keys and values lie: `first` on of every page of the layout is on the device, from
    /// `pages` on, `bytes` of each.
    struct PagePiece {
        std::byte* pages = nullptr;
        std::uint64_t first = 0;
        std::uint64_t bytes = 0;
    };
    void set_state(const StateLayout& layout, const PagePiece& piece);

    /// What the following operations work on.
    struct StepView {
        const StepBlock* block;
        std::int64_t tokens;
        std::int64_t logits;  ///< rows that want logits
        bool all_logits;      ///< they are all rows
        std::int32_t pages;   ///< of the longest sequence, at least
    };
    void begin(const StepView& view);
    /// Called by `moe_ffn` before its experts: where a prompt's missing ones are brought in.
    void on_experts(std::function<void(int layer)> before, std::function<void(int layer)> after) {
        before_experts_ = std::move(before);
        after_experts_ = std::move(after);
    }

    /// Where the residual stream is at this point of what was queued: norms that add to it move it.
    float* residual() { return row_of(parts_.model.residual); }
    /// The residual stream with everything added that was to be added.
    const float* queue_residual();
    std::int64_t residual_stride() const { return stride(parts_.model.residual); }
    /// Rows [first, first + count) of those that want logits: from the residual stream to `out`.
    void queue_logits(std::int64_t first, std::int64_t count, float* out);
    /// On the device.
    const cuda::HandOffTimes* hand_off_times() const { return times_; }
    float* logits_buffer() const { return logits_; }
    std::int64_t logits_rows() const { return logits_rows_; }
    /// Times experts that are read over the link, as many at once as a token uses; of one, on an idle device.
    /// Calls `meanwhile` while the device reads, once a round of some.
    double seconds_per_linked_expert(int layer, const StepBlock& block, FunctionRef<void()> meanwhile);
    /// Zeroes the counters of a step; queued before its first layer.
    void queue_begin();
    void queue_finish();

    void embed(const models::Matrix& table, models::Value out) override;
    void rms_norm(models::Value x, const models::Vector& weight, float epsilon, models::Value out) override;
    void project(models::Value x, std::span<const models::Projection> projections) override;
    void project_heads(const models::ExpertMatrix&, models::Value, std::int64_t, std::int64_t, models::Value,
                       std::int64_t) override;
    void add(models::Value x, models::Value y) override;
    void rope(models::Value x, std::int64_t head_width, std::int64_t offset,
              const models::Rope& rope) override;
    void copy_heads(models::Value, std::int64_t, std::int64_t, models::Value, std::int64_t, std::int64_t,
                    std::int64_t, std::int64_t) override;
    void attention(int layer, const models::Attention& attention, models::Value queries, models::Value keys,
                   models::Value values, models::Value out) override;
    void sigmoid_gate(models::Value, models::Value) override;
    void delta_net(int, const models::DeltaNet&, models::Value, models::Value, models::Value, models::Value,
                   models::Value) override;
    void dense_ffn(const models::DenseFfn& ffn, models::Value x, models::Value out) override;
    void moe_ffn(int layer, const models::MoeFfn& ffn, models::Value x, models::Value out) override;
    void layer_done(int layer, models::Value residual) override;
    void logits(models::Value x, const models::Vector& norm, float epsilon,
                const models::Matrix& output) override;

  private:
    /// A scratch matrix and its quantised form.
    struct Buffer {
        float* data = nullptr;
        std::int64_t width = 0;
        std::int64_t stride = 0;
        cuda::ActivationBuffer quantised;
        bool quantised_now = false;  ///< belongs to the present content
    };
    /// What is to be done to heads of a value before it is read.
    struct HeadWork {
        const models::Vector* norm = nullptr;
        float epsilon = 0.0f;
        const models::Rope* rope = nullptr;
        std::int64_t head_width = 0;
    };

    /// A norm of the residual stream that nothing has read yet, in a step of few tokens. It takes a pending
    /// addition to x with it.
    struct PendingNorm {
        models::Value x;
        const models::Vector* weight;
        float epsilon;
        models::Value out;
    };

    Buffer take_buffer(DeviceArena& arena, std::int64_t rows, std::int64_t width) const;
    Buffer take_buffer(DeviceArena& arena, std::int64_t rows, std::int64_t width, float* data) const;
    void take_expert_rows(DeviceArena& arena, std::int64_t pairs);
    void take_sorted(DeviceArena& arena, std::int64_t pairs, std::int64_t experts);
    Buffer& buffer(models::Value value) { return values_[static_cast<std::size_t>(value.index)]; }
    HeadWork& head_work(models::Value value) { return head_work_[static_cast<std::size_t>(value.index)]; }
    float* row_of(models::Value value) { return buffer(value).data; }
    std::int64_t stride(models::Value value) const {
        return values_[static_cast<std::size_t>(value.index)].stride;
    }
    cuda::Rows rows(const Buffer& of) const {
        return {of.data, of.stride, static_cast<std::int32_t>(view_.tokens),
                static_cast<std::int32_t>(of.width)};
    }
    cuda::StreamHandle handle() const { return parts_.stream.handle(); }
    cuda::StepCounters counters() const {
        return {view_.block->number(), missing_, routed_,  routed_experts_,
                routed_weights_,       times_,   answered_};
    }
    cuda::CachePages cache_of(int layer) const;
    void prompt_attention(cuda::AttentionArgs args) const;

    bool is_window() const { return view_.tokens <= kWindowTokens; }
    void settle(models::Value value);
    /// Queues a pending norm, then a pending addition.
    void flush();
    bool norm_is_pending_for(models::Value value) const;
    /// The pending norm, for a kernel that is queued next and stores its results.
    cuda::NormedInput take_norm();
    /// The quantised form and the values of x, formed if they are not there.
    cuda::Activations inputs(Buffer& x, bool quantised);
    cuda::MatmulJob job(const models::Matrix& matrix, float* out, std::int64_t out_stride) const;
    /// Products of one input: out of outs[i] is rows strides[i] apart. Those in `done` (bits) are left out.
    struct Products {
        std::span<const models::Matrix* const> matrices;
        std::span<float* const> outs;
        std::span<const std::int64_t> strides;
        std::uint64_t done = 0;
    };
    void take_jobs(DataType type, Products& products, cuda::MatmulArgs& args) const;
    void multiply(Buffer& x, Products products);
    /// With the pending norm of x, where its products of a first type (and a second) have such a kernel.
    void multiply_normed(models::Value x, Products& products);
    void run_ffn(const models::DenseFfn& ffn, models::FfnActivation activation, Buffer& x, float* out,
                 std::int64_t out_stride);
    bool router_norms(const models::MoeFfn& ffn, models::Value x) const;
    void run_router(int layer, const models::MoeFfn& ffn, Buffer& x, bool normed);
    /// Adds them up as well where `combine` is there.
    cuda::CombineArgs combine_args(int layer, const models::MoeFfn& ffn, const Buffer& out) const;
    bool combines(const models::MoeFfn& ffn) const;
    void run_experts(int layer, const models::MoeFfn& ffn, Buffer& x, const cuda::CombineArgs* combine);
    void run_shared(const models::MoeFfn& ffn, Buffer& x, std::int64_t out_stride);
    /// The chosen pairs by expert where that pays: a prompt's, of which experts have several each.
    cuda::SortedPairs sort_pairs(const cpu::Routing& routing);
    void gate_experts(const models::MoeFfn& ffn, const Buffer& hidden, std::int64_t pairs);
    void run_gate_up(int layer, const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden);
    void run_gate_and_up(int layer, const models::MoeFfn& ffn, Buffer& x, const Buffer& hidden,
                         const cuda::SortedPairs& sorted);
    /// Where a weight's matrices stand in slots, its shape, scales and biases.
    template <typename Args>
    void set_matrix(const models::ExpertMatrix& weight, std::uint64_t offset, int i, Args& args) const;

    Parts parts_;
    const std::int64_t max_tokens_;
    const std::int64_t logits_rows_;
    StepView view_{};
    const StateLayout* layout_ = nullptr;
    PagePiece pages_;
    std::function<void(int)> before_experts_;
    std::function<void(int)> after_experts_;

    std::vector<Buffer> values_;
    std::vector<HeadWork> head_work_;
    std::optional<std::pair<models::Value, models::Value>> pending_add_;
    std::optional<PendingNorm> pending_norm_;
    float* residual_home_ = nullptr;  ///< where it is when a step begins
    float* residual_away_ = nullptr;  ///< [kWindowTokens][stride]: where it may go meanwhile

    Buffer dense_hidden_;
    float* dense_up_ = nullptr;
    Buffer expert_hidden_;  ///< rows: pairs; `data` holds gate and behind it up
    float* expert_rows_ = nullptr;
    std::int64_t expert_row_stride_ = 0;
    float* shared_rows_ = nullptr;
    float* shared_gates_ = nullptr;
    float* router_logits_ = nullptr;
    std::int64_t router_stride_ = 0;
    std::int32_t* chosen_ = nullptr;
    float* weights_ = nullptr;
    std::uint64_t* slots_ = nullptr;
    cuda::SortedPairs sorted_;          ///< memory alone
    std::uint32_t* missing_ = nullptr;  ///< [layers], and behind it routed_
    std::uint32_t* routed_ = nullptr;
    std::int32_t* routed_experts_ = nullptr;  ///< [layers][max_tokens][used]
    float* routed_weights_ = nullptr;
    cuda::HandOffTimes* times_ = nullptr;
    std::uint64_t* answered_ = nullptr;
    std::uint32_t* router_arrivals_ = nullptr;
    float* partials_ = nullptr;
    std::int64_t partial_floats_ = 0;
    std::uint32_t* arrivals_ = nullptr;
    Buffer gathered_;
    float* logits_ = nullptr;
    const models::Vector* output_norm_ = nullptr;
    float output_epsilon_ = 0.0f;
    const models::Matrix* output_ = nullptr;
};

}  // namespace coterie::engine
