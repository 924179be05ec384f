#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"
#include "scheduler/expert_usage.h"
#include "scheduler/run/job.h"

namespace coterie::scheduler {

/// A job's part of the step that runs.
struct RunningSlice {
    Job* job;
    std::int64_t first;   ///< of its tokens, counted through the step
    std::int64_t tokens;  ///< drafted ones included
    bool of_prompt;       ///< it brings a job to its answer, at first or once more after a pause
};

/// Sees a step's layers: ends it once nobody waits for it any more, counts experts, collects hidden states
/// for embeddings.
class StepWatch final : public engine::StepObserver {
  public:
    StepWatch(const engine::Engine& engine, ExpertUsage& usage);

    /// The step that is about to run; `slices` must live until it ends.
    void begin(std::span<const RunningSlice> slices);

    void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                std::span<const float> weights) override;
    void layer_done(int layer, const float* residual, std::int64_t rows, std::int64_t stride) override;

  private:
    bool everybody_left() const;

    const models::Model& model_;
    ExpertUsage& usage_;
    std::span<const RunningSlice> slices_;
    std::vector<float> hidden_;
    bool embeds_ = false;
};

}  // namespace coterie::scheduler
