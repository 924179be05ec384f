#include "cli/generation.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/bad_logits.h"
#include "cli/interrupt.h"
#include "speculative/speculator.h"
#include "speculative/window.h"
#include "tokenizer/streaming_detokenizer.h"

namespace coterie::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Ends a prompt's step at the next layer after Ctrl-C or a request for the end, and shows how far the prompt
/// is, within steps too. `routing` may be null.
class PromptObserver final : public engine::StepObserver {
  public:
    PromptObserver(engine::StepObserver* routing, std::int64_t layers) : routing_(routing), layers_(layers) {}
    bool wants_whole_steps() const override { return routing_ && routing_->wants_whole_steps(); }
    void routed(int layer, std::int64_t row, std::span<const std::int32_t> experts,
                std::span<const float> weights) override {
        if (routing_) routing_->routed(layer, row, experts, weights);
    }
    void layer_done(int layer, const float*, std::int64_t rows, std::int64_t) override {
        if (interrupt_requested()) fail(ErrorCode::Cancelled, "interrupted");
        show(std::min(total_, done_ + rows * (layer + 1) / layers_));
    }

    void step_done(std::int64_t held, std::int64_t done, std::int64_t total) {
        held_ = held;
        done_ = done;
        total_ = total;
        show(done);
    }
    /// Tokens that were there already; -1 before the first step.
    std::int64_t held() const { return held_; }

  private:
    void show(std::int64_t done) {
        bar_.update(static_cast<std::uint64_t>(done - held_), static_cast<std::uint64_t>(total_ - held_));
    }

    engine::StepObserver* routing_;
    std::int64_t layers_;
    ProgressBar bar_{"reading the prompt", ProgressBar::Unit::Tokens};
    std::int64_t held_ = -1;
    std::int64_t done_ = 0;
    std::int64_t total_ = 0;
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
    PromptObserver observer(request.observer, engine.config().layers);
    const auto progress = [&](std::int64_t held, std::int64_t done, std::int64_t total) {
        observer.step_done(held, done, total);
    };
    try {
        const std::span<const float> logits = engine.extend(sequence, request.prompt, &observer, progress);
        stats.prompt_seconds = seconds_since(start);
        stats.cached_tokens = observer.held();
        stats.prompt_tokens = static_cast<std::int64_t>(request.prompt.size()) - observer.held();
        return logits.data();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::Cancelled) throw;
        stats.stop = StopReason::Interrupted;
        return nullptr;
    }
}

/// Draws an answer's tokens one after another and hands their text on.
class Writer {
  public:
    /// `text` holds the prompt and gets the answer.
    Writer(engine::Engine& engine, const Tokenizer& tokenizer, SamplerChain& sampler,
           const GenerationRequest& request, FunctionRef<void(std::string_view)> emit, GenerationStats& stats,
           std::vector<TokenId>& text)
        : engine_(engine),
          tokenizer_(tokenizer),
          sampler_(sampler),
          request_(request),
          emit_(emit),
          stats_(stats),
          text_(text),
          pieces_(tokenizer, {.control = ControlTokens::Hide, .leading_space = LeadingSpace::Keep}) {}

    /// Draws the next token. False where it was the last one; stats say why.
    bool draw(std::span<const float> logits) {
        const TokenId token = choose(logits);
        text_.push_back(token);
        ++stats_.generated_tokens;
        if (request_.stop_at_end_tokens && tokenizer_.is_end_of_generation(token)) return false;
        if (const std::string piece = pieces_.add(token); !piece.empty()) emit_(piece);
        if (request_.constraint && request_.constraint->finished()) return false;
        if (static_cast<std::int64_t>(text_.size()) >= engine_.context())
            return stop(StopReason::ContextFull);
        return may_go_on();
    }

    /// False where the limit is reached or Ctrl-C was pressed.
    bool may_go_on() {
        if (stats_.generated_tokens == request_.limit) return stop(StopReason::Limit);
        if (interrupt_requested()) return stop(StopReason::Interrupted);
        return true;
    }

    void finish() {
        if (const std::string rest = pieces_.flush(); !rest.empty()) emit_(rest);
    }

  private:
    /// Accepted by all who follow the answer.
    TokenId choose(std::span<const float> logits) {
        GrammarConstraint* constraint = request_.constraint;
        const std::span<const std::uint64_t> allowed =
            constraint ? constraint->mask() : std::span<const std::uint64_t>();
        const TokenId token = sample(logits, allowed);
        sampler_.accept(token);
        if (constraint) constraint->accept(token);
        return token;
    }

    /// Logits that no token can be drawn from are the model file's fault.
    TokenId sample(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
        try {
            return sampler_.sample(logits, allowed);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::Internal || all_finite(logits)) throw;
            refuse_bad_logits(engine_.archive().name());
        }
    }

    bool stop(StopReason reason) {
        stats_.stop = reason;
        return false;
    }

    engine::Engine& engine_;
    const Tokenizer& tokenizer_;
    SamplerChain& sampler_;
    const GenerationRequest& request_;
    FunctionRef<void(std::string_view)> emit_;
    GenerationStats& stats_;
    std::vector<TokenId>& text_;
    StreamingDetokenizer pieces_;
};

/// Computes an answer's tokens: the last one of the text in each step, and behind it what is drafted.
class Steps {
  public:
    Steps(engine::Engine& engine, engine::Sequence& sequence, const GenerationRequest& request,
          GenerationStats& stats, const std::vector<TokenId>& text)
        : engine_(engine),
          sequence_(sequence),
          request_(request),
          stats_(stats),
          text_(text),
          speculator_(speculative::make_speculator(request.drafts, engine.context())) {}

    /// One step, in which the writer draws a token or several. False where one was the last.
    bool next(Writer& writer) {
        begin();
        bool more = true;
        const auto take = [&](std::int64_t row, std::span<const float> logits) {
            if (!window_.draws(row)) return;
            more = writer.draw(logits);
            if (more) {
                window_.drew(text_.back());
            } else {
                window_.end();
            }
        };
        const Clock::time_point start = Clock::now();
        const engine::Slice slice{&sequence_, window_.tokens(), engine::Slice::Logits::All};
        engine_.step({&slice, 1}, take, request_.observer);
        if (speculator_) settle(seconds_since(start));
        return more;
    }

  private:
    void begin() {
        const auto held = static_cast<std::size_t>(sequence_.length());
        window_.begin(std::span(text_).subspan(held), draft());
        if (window_.drafted() > 0) sequence_.snapshot();  // recurrent layers come back to it
    }

    std::span<const TokenId> draft() {
        if (!speculator_) return {};
        const auto length = static_cast<std::int64_t>(text_.size());
        // Each is computed, and one more drawn behind it.
        std::int64_t most = std::min(request_.drafts.most_tokens, engine_.context() - length - 1);
        most = std::min(most, engine_.batch() - (length - sequence_.length()));
        if (request_.limit >= 0) most = std::min(most, request_.limit - stats_.generated_tokens - 1);
        speculative::StepBudget budget(costs_, 1);
        return speculator_->draft(text_, most, budget);
    }

    void settle(double seconds) {
        const std::int64_t drafted = window_.drafted();
        costs_.observe(static_cast<std::int64_t>(window_.tokens().size()), seconds);
        if (drafted == 0) return;
        stats_.drafted_tokens += drafted;
        stats_.accepted_tokens += window_.accepted();
        speculator_->settle(window_.accepted(), window_.rejected());
        const auto held = static_cast<std::int64_t>(text_.size()) - 1;
        if (sequence_.length() > held) sequence_.truncate(held);
    }

    engine::Engine& engine_;
    engine::Sequence& sequence_;
    const GenerationRequest& request_;
    GenerationStats& stats_;
    const std::vector<TokenId>& text_;
    std::unique_ptr<speculative::Speculator> speculator_;  ///< or null
    speculative::StepCosts costs_;
    speculative::Window window_;
};

}  // namespace

GenerationStats generate(engine::Engine& engine, engine::Sequence& sequence, const Tokenizer& tokenizer,
                         SamplerChain& sampler, const GenerationRequest& request,
                         FunctionRef<void(std::string_view)> emit) {
    check_room(engine, request.prompt);
    GenerationStats stats;
    const float* logits = read_prompt(engine, sequence, request, stats);
    if (!logits) return stats;
    sampler.accept(request.prompt);

    std::vector<TokenId> text(request.prompt.begin(), request.prompt.end());
    text.reserve(static_cast<std::size_t>(engine.context()));
    Writer writer(engine, tokenizer, sampler, request, emit, stats, text);
    Steps steps(engine, sequence, request, stats, text);
    const Clock::time_point start = Clock::now();
    bool more =
        writer.may_go_on() && writer.draw({logits, static_cast<std::size_t>(engine.config().vocabulary)});
    while (more) more = steps.next(writer);
    writer.finish();
    stats.generation_seconds = seconds_since(start);
    return stats;
}

std::string describe(const GenerationStats& stats) {
    const auto rate = [](std::int64_t tokens, double seconds) {
        return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0;
    };
    const std::string drafts =
        stats.drafted_tokens == 0
            ? std::string()
            : fmt::format(", {} of {} drafted tokens came true", stats.accepted_tokens, stats.drafted_tokens);
    return fmt::format("prompt {} tokens ({} cached) at {:.1f} t/s, answer {} tokens at {:.1f} t/s{}",
                       stats.prompt_tokens, stats.cached_tokens,
                       rate(stats.prompt_tokens, stats.prompt_seconds), stats.generated_tokens,
                       rate(stats.generated_tokens, stats.generation_seconds), drafts);
}

}  // namespace coterie::cli
