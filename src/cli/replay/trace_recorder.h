#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "expert_cache/trace/trace_writer.h"

namespace coterie::cli {

/// Records the routing of every step it observes. A step that ended early is left out. Takes no memory once
/// it is made.
class TraceRecorder final : public engine::StepObserver {
  public:
    /// Throws Unsupported for a model without experts, and what TraceWriter throws.
    TraceRecorder(const std::string& path, const engine::Engine& engine);

    bool wants_whole_steps() const override { return true; }
    void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                std::span<const float> weights) override;

    /// Completes the file. Throws Io.
    void finish();

  private:
    void write_step();

    expert_cache::TraceWriter writer_;
    std::vector<std::int32_t> places_;   ///< [layers of the model] in the trace, or -1
    std::vector<std::int32_t> experts_;  ///< [batch][layers][used] of the running step
    std::int64_t rows_ = 0;              ///< of the running step, as far as its first layer told
    std::int64_t complete_rows_ = 0;     ///< of them, those that its last layer has routed
    std::uint32_t steps_ = 0;            ///< written
};

}  // namespace coterie::cli
