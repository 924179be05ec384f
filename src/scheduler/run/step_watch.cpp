#include "scheduler/run/step_watch.h"

#include <algorithm>

#include "base/error.h"
#include "engine/hidden_state.h"

namespace coterie::scheduler {

StepWatch::StepWatch(const engine::Engine& engine, ExpertUsage& usage)
    : model_(engine.model()), usage_(usage), hidden_(static_cast<std::size_t>(engine.config().embedding)) {}

void StepWatch::begin(std::span<const RunningSlice> slices) {
    slices_ = slices;
    embeds_ = std::any_of(slices.begin(), slices.end(),
                          [](const RunningSlice& slice) { return slice.job->is_embedding(); });
}

void StepWatch::routed(int layer, std::int64_t, std::span<const std::int32_t> experts,
                       std::span<const float>) {
    usage_.count(layer, experts);
}

bool StepWatch::everybody_left() const {
    return std::all_of(slices_.begin(), slices_.end(),
                       [](const RunningSlice& slice) { return slice.job->events()->closed(); });
}

void StepWatch::layer_done(int layer, const float* residual, std::int64_t, std::int64_t stride) {
    if (everybody_left()) fail(ErrorCode::Cancelled, "cancelled");
    if (!embeds_ || layer + 1 != static_cast<int>(model_.config.layers)) return;
    if (residual == nullptr) {
        fail(ErrorCode::Unsupported,
             "embeddings are computed on the CPU only so far; start the server with -ngl 0");
    }
    for (const RunningSlice& slice : slices_) {
        for (std::int64_t i = 0; i < slice.tokens; ++i, residual += stride) {
            if (!slice.job->is_embedding()) continue;
            engine::final_hidden_state(model_, residual, hidden_);
            slice.job->pool(hidden_, slice.job->sequence->length() + i + 1 == slice.job->prompt_tokens());
        }
    }
}

}  // namespace coterie::scheduler
