#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/forward/cuda/cuda_ops.h"
#include "engine/forward/cuda/device_pages.h"
#include "engine/forward/cuda/miss_server.h"
#include "engine/forward/cuda/prompt_stream.h"
#include "engine/forward/device_forward.h"
#include "engine/forward/hybrid/expert_catalog.h"

namespace coterie::engine {

/// Rows that want logits and are computed at once.
inline constexpr std::int64_t kLogitsRows = 32;

/// Some layers of a model on one GPU: their dense weights, their part of the KV cache, and the kernels of
/// their part of a step. The residual stream comes from the stage before, through pinned memory, and goes on
/// to the next one; the first stage brings embeddings, the last makes logits. A stage works on one step at a
/// time; several stages may each have their own.
class CudaStage {
  public:
    struct Parts {
        const models::Model& model;
        const ExpertCatalog& catalog;
        ExpertPass& pass;
        CudaStage* previous;  ///< null for the first stage
    };
    /// Checks the kernels and takes all memory that steps need but the cache's. Throws Unsupported where the
    /// layers cannot run on a GPU, OutOfMemory where `budget` bytes do not hold them, Internal where the GPU
    /// computes other bits than the law.
    CudaStage(const Parts& parts, CudaDevice& device, LayerRange layers, const DeviceForwardOptions& options,
              DevicePages* pages, std::uint64_t budget);
    ~CudaStage();
    CudaStage(const CudaStage&) = delete;
    CudaStage& operator=(const CudaStage&) = delete;

    /// What of the budget is left for experts.
    std::uint64_t slot_budget() const { return slot_budget_; }
    /// Experts are in the memory of the cache's device `index`. `readable`: the GPU reads those in RAM.
    void use_cache(expert_cache::ExpertCache& cache, std::int32_t index);
    /// Measures what the two ways to a missing expert cost here, so that each layer's misses go where they
    /// end first.
    void measure_misses(const std::optional<MissCosts>& known);

    /// Before the cache's step begins: borrows memory to stream a prompt's missing experts through, if there
    /// are any and the cache can lend it.
    void borrow();
    /// Whether the CPU then has to compute experts that are missing, rather than the link to bring them.
    bool asks_host() const { return prompt_stream_ && !residents_->complete() && !streams_; }
    /// After it has begun: the kernels learn what is resident.
    void refresh();
    void give_back();

    /// Makes ready for a step, or a part of one, which must live until its `end`: what takes long where it is
    /// the first of its kind happens here, while no GPU waits for the CPU.
    void prepare(const Step& step, std::uint64_t number);
    /// Queues it; after the stage before has begun the same and the next has begun the one before.
    void begin();
    bool busy() const { return busy_; }
    /// Computes what the GPU asks for; true once the step is done. To be called without a pause.
    bool poll();
    /// After that: hands the logits of the last stage to the consumer; `first_row` is added to its rows.
    void take_logits(std::int64_t first_row);
    void end() { busy_ = false; }
    /// [tokens of the step][used]: the step's routing, once it is done.
    std::span<const std::int32_t> experts(int layer) const;
    std::span<const float> weights(int layer) const;

    /// Throws where the GPU has failed.
    void check() { stream_->check(); }
    /// Lets a GPU that waits for the CPU go on, with wrong results; of all stages, before the first `drain`.
    void release() { server_->release(); }
    void drain() noexcept;

    CudaDevice& device() const { return device_; }
    LayerRange layers() const { return layers_; }
    const DeviceMemoryUse& memory_use() const { return use_; }
    DeviceCounts counts();

  private:
    /// What a recorded graph depends on besides what the step's block holds: tokens, logits, whether they are
    /// of all tokens, pages.
    using GraphKey = std::tuple<std::int64_t, std::int64_t, bool, std::int32_t>;

    bool first() const { return parts_.previous == nullptr; }
    bool last() const { return next_ == nullptr; }
    bool is_window() const;
    MissCosts costs_of_misses(int layer);
    CudaOps::StepView view_of(const Step& step, const StepBlock& block) const;
    void write_block(StepBlock& block, std::uint64_t number);
    void record_window();
    void queue(const CudaOps::StepView& view);
    void queue_long();
    void copy_logits(std::int64_t count);
    void consume(std::int64_t first, std::int64_t count, std::int64_t first_row) const;

    const Parts parts_;
    CudaDevice& device_;
    const LayerRange layers_;
    const WeightList list_;
    const std::int64_t max_tokens_;
    std::uint64_t slot_budget_ = 0;
    std::unique_ptr<CudaStream> stream_;
    std::optional<DeviceWeights> weights_;
    DeviceArena arena_;
    std::optional<HostMailbox> mailbox_;
    std::optional<ResidentTable> residents_;
    std::optional<LinkPath> link_;
    std::optional<CudaOps> ops_;
    std::optional<StepBlock> window_block_;
    std::optional<StepBlock> long_block_;
    std::optional<MissServer> server_;
    std::optional<PromptStream> prompt_stream_;
    std::unique_ptr<PinnedMemory> logits_host_;
    std::map<GraphKey, std::unique_ptr<CudaGraph>> graphs_;
    RopeTables ropes_;
    std::vector<std::int64_t> positions_;

    CudaStage* next_ = nullptr;
    std::unique_ptr<PinnedMemory> inbox_;  ///< [tokens][stride]: the residual stream from the stage before
    std::unique_ptr<Event> passed_on_;     ///< the next stage's inbox is filled

    expert_cache::ExpertCache* cache_ = nullptr;
    std::int32_t index_ = 0;  ///< of the device in the cache
    bool streams_ = false;    ///< memory is borrowed
    bool busy_ = false;
    Step step_;
    CudaOps::StepView view_{};
    const CudaGraph* graph_ = nullptr;  ///< of a step of few tokens
    std::uint64_t number_ = 0;
    DeviceMemoryUse use_;
    DeviceCounts counts_;
};

}  // namespace coterie::engine
