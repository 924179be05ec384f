#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "engine/engine.h"
#include "sampling/grammar/grammar_constraint.h"
#include "sampling/sampler_chain.h"
#include "speculative/options.h"
#include "tokenizer/tokenizer.h"

namespace coterie::cli {

enum class StopReason { EndToken, Limit, ContextFull, Interrupted };

/// What one answer took. Prompt and generation are timed apart; tokens that were already held count for
/// neither.
struct GenerationStats {
    std::int64_t prompt_tokens = 0;  ///< computed
    std::int64_t cached_tokens = 0;  ///< of the prompt, held from before
    std::int64_t generated_tokens = 0;
    std::int64_t drafted_tokens = 0;
    std::int64_t accepted_tokens = 0;  ///< of the drafted ones
    double prompt_seconds = 0.0;
    double generation_seconds = 0.0;
    StopReason stop = StopReason::EndToken;
};

struct GenerationRequest {
    std::span<const TokenId> prompt;  ///< the whole sequence so far
    std::int64_t limit = -1;          ///< tokens to generate at most; -1: until the end
    bool stop_at_end_tokens = true;
    GrammarConstraint* constraint = nullptr;   ///< at its start; the answer ends where it can only end
    engine::StepObserver* observer = nullptr;  ///< sees the routing of prompt and answer, and of drafts
    speculative::SpeculativeOptions drafts = {};
};

/// Brings the sequence to the prompt and draws tokens until the end, the limit, a full context or Ctrl-C
/// (`interrupt.h`). `emit` gets the text as it becomes certain. The sequence then holds the prompt and all
/// drawn tokens but the last. Throws InvalidArgument for a prompt that leaves no room in the context.
GenerationStats generate(engine::Engine& engine, engine::Sequence& sequence, const Tokenizer& tokenizer,
                         SamplerChain& sampler, const GenerationRequest& request,
                         FunctionRef<void(std::string_view)> emit);

/// One line: "prompt 9 tokens (0 cached) at 210.3 t/s, answer 57 tokens at 85.1 t/s", and with drafts
/// ", 31 of 40 drafted tokens came true".
std::string describe(const GenerationStats& stats);

}  // namespace coterie::cli
