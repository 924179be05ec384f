#include "cli/generation.h"

#include <chrono>
#include <fmt/format.h>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/interrupt.h"
#include "tokenizer/streaming_detokenizer.h"

namespace coterie::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Ends a step at the next layer after Ctrl-C. `routing` may be null.
class InterruptObserver final : public engine::StepObserver {
  public:
    explicit InterruptObserver(engine::StepObserver* routing) : routing_(routing) {}
    void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                std::span<const float> weights) override {
        if (routing_) routing_->routed(layer, row, experts, weights);
    }
    void layer_done(int, const float*, std::int64_t, std::int64_t) override {
        if (interrupt_requested()) fail(ErrorCode::Cancelled, "interrupted");
    }

  private:
    engine::StepObserver* routing_;
};

void check_room(const engine::Engine& engine, std::span<const TokenId> prompt) {
    const auto tokens = static_cast<std::int64_t>(prompt.size());
    if (tokens == 0) fail(ErrorCode::InvalidArgument, "the prompt is empty; give at least one token");
    if (tokens < engine.context()) return;
    fail(ErrorCode::InvalidArgument,
         "the prompt has {} tokens, and the context of {} must hold it and an answer; use a "
         "larger -c or a shorter prompt",
         tokens, engine.context());
}

/// Computes what the sequence lacks of the prompt; null when interrupted.
const float* read_prompt(engine::Engine& engine, engine::Sequence& sequence, const GenerationRequest& request,
                         GenerationStats& stats) {
    const Clock::time_point start = Clock::now();
    ProgressBar bar("reading the prompt", ProgressBar::Unit::Tokens);
    InterruptObserver observer(request.observer);
    std::int64_t first = -1;
    const auto progress = [&](std::int64_t held, std::int64_t done, std::int64_t total) {
        first = held;
        bar.update(static_cast<std::uint64_t>(done - held), static_cast<std::uint64_t>(total - held));
    };
    try {
        const std::span<const float> logits = engine.extend(sequence, request.prompt, &observer, progress);
        stats.prompt_seconds = seconds_since(start);
        stats.cached_tokens = first;
        stats.prompt_tokens = static_cast<std::int64_t>(request.prompt.size()) - first;
        return logits.data();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::Cancelled) throw;
        stats.stop = StopReason::Interrupted;
        return nullptr;
    }
}

/// The next token, accepted by all who follow the answer.
TokenId draw(SamplerChain& sampler, std::span<const float> logits, GrammarConstraint* constraint) {
    const std::span<const std::uint64_t> allowed =
        constraint ? constraint->mask() : std::span<const std::uint64_t>();
    const TokenId token = sampler.sample(logits, allowed);
    sampler.accept(token);
    if (constraint) constraint->accept(token);
    return token;
}

}  // namespace

GenerationStats generate(engine::Engine& engine, engine::Sequence& sequence, const Tokenizer& tokenizer,
                         SamplerChain& sampler, const GenerationRequest& request,
                         FunctionRef<void(std::string_view)> emit, std::vector<TokenId>& generated) {
    check_room(engine, request.prompt);
    GenerationStats stats;
    generated.clear();
    const float* logits = read_prompt(engine, sequence, request, stats);
    if (!logits) return stats;
    sampler.accept(request.prompt);

    StreamingDetokenizer text(tokenizer,
                              {.control = ControlTokens::Hide, .leading_space = LeadingSpace::Keep});
    const auto vocabulary = static_cast<std::size_t>(engine.config().vocabulary);
    const Clock::time_point start = Clock::now();
    const auto keep_drawn = [&](std::int64_t, std::span<const float> row) { logits = row.data(); };
    while (true) {
        if (stats.generated_tokens == request.limit) {
            stats.stop = StopReason::Limit;
            break;
        }
        if (interrupt_requested()) {
            stats.stop = StopReason::Interrupted;
            break;
        }
        const TokenId token = draw(sampler, {logits, vocabulary}, request.constraint);
        generated.push_back(token);
        ++stats.generated_tokens;
        if (request.stop_at_end_tokens && tokenizer.is_end_of_generation(token)) break;
        if (const std::string piece = text.add(token); !piece.empty()) emit(piece);
        if (request.constraint && request.constraint->finished()) break;
        if (sequence.length() + 1 >= engine.context()) {
            stats.stop = StopReason::ContextFull;
            break;
        }
        const engine::Slice slice{&sequence, {&token, 1}, engine::Slice::Logits::Last};
        engine.step({&slice, 1}, keep_drawn, request.observer);
    }
    if (const std::string rest = text.flush(); !rest.empty()) emit(rest);
    stats.generation_seconds = seconds_since(start);
    return stats;
}

std::string describe(const GenerationStats& stats) {
    const auto rate = [](std::int64_t tokens, double seconds) {
        return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
    };
    return fmt::format("prompt {} tokens ({} cached) at {:.1f} t/s, answer {} tokens at {:.1f} t/s",
                       stats.prompt_tokens, stats.cached_tokens,
                       rate(stats.prompt_tokens, stats.prompt_seconds), stats.generated_tokens,
                       rate(stats.generated_tokens, stats.generation_seconds));
}

}  // namespace coterie::cli
