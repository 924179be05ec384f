#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "kv_cache/sequence_state.h"

namespace coterie::engine {

/// Consecutive tokens of one sequence within a step.
struct StepSlice {
    SequenceState* state;
    std::int64_t position;   ///< of the first token
    std::int64_t first_row;  ///< of the step's matrices
    std::int64_t count;
};

/// Sees what a step does, for traces, progress and tests. Called on the thread that runs the step, between
/// operations; throwing Cancelled ends the step.
class StepObserver {
  public:
    virtual ~StepObserver() = default;

    /// Whether it is to see layer after layer with all of a step's rows. Else several GPUs may work on
    /// different rows at once, and tell each part's layers as they come to their end.
    virtual bool wants_whole_steps() const { return false; }
    /// The experts of one row in rank order.
    virtual void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                        std::span<const float> weights) {
        static_cast<void>(layer), static_cast<void>(row), static_cast<void>(experts),
            static_cast<void>(weights);
    }
    /// The residual stream after a layer: `rows` rows, `stride` floats apart; null where it is not on the
    /// host, as in a GPU's steps, which tell all layers once they are over.
    virtual void layer_done(int layer, const float* residual, std::int64_t rows, std::int64_t stride) {
        static_cast<void>(layer), static_cast<void>(residual), static_cast<void>(rows),
            static_cast<void>(stride);
    }
};

/// Logits of one row of the step. The span is valid during the call; the last row's until the next step.
using LogitsConsumer = FunctionRef<void(std::int64_t row, std::span<const float> logits)>;

/// What one pass through the model computes: a few tokens of one or several sequences.
struct Step {
    std::span<const std::int32_t> tokens;       ///< [rows]
    std::span<const StepSlice> slices;          ///< cover the rows in order
    std::span<const std::int64_t> logits_rows;  ///< ascending
    const LogitsConsumer* logits = nullptr;
    StepObserver* observer = nullptr;
};

}  // namespace coterie::engine
