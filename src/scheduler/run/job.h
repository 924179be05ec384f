#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "scheduler/answer.h"
#include "scheduler/request.h"
#include "scheduler/text/answer_text.h"
#include "speculative/speculator.h"
#include "speculative/window.h"

namespace coterie::scheduler {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Another job that is reading the beginning of this one's prompt: waiting for it saves reading it twice.
struct Followed {
    std::uint64_t job;    ///< its number
    std::int64_t length;  ///< tokens that both begin with
};

/// A request on its way through the scheduler.
///
/// It holds all its tokens, the prompt and what was drawn; its sequence holds the first of them. What lacks
/// is computed, the logits of the last one are drawn from, and so on. A job whose sequence was taken away
/// (its pages were needed) loses nothing but time: the tokens are all there.
class Job {
  public:
    /// `context`: tokens that a sequence may have.
    Job(Request request, std::uint64_t number, const Tokenizer& tokenizer, std::int64_t context);

    const Request& request() const { return request_; }
    std::uint64_t number() const { return number_; }
    const std::shared_ptr<EventQueue>& events() const { return events_; }
    const std::vector<TokenId>& tokens() const { return tokens_; }
    std::int64_t prompt_tokens() const { return static_cast<std::int64_t>(request_.prompt.size()); }
    const Usage& usage() const { return usage_; }

    bool is_embedding() const { return request_.embedding.has_value(); }
    /// Whether the prompt was read and the answer has begun.
    bool answering() const { return first_token_.has_value(); }
    /// Tokens still to be computed before the next draw. Requires a sequence.
    std::int64_t lacking() const { return static_cast<std::int64_t>(tokens_.size()) - sequence->length(); }

    /// The reader left, or a time limit has passed.
    std::optional<FinishReason> overdue(SteadyTime now) const;
    std::optional<SteadyTime> deadline() const { return deadline_; }

    /// Tells the reader that it runs, once.
    void start(int slot, std::int64_t cached, SteadyTime now);
    void report_progress(SteadyTime now);

    /// Lets tokens be drafted behind those that lack. Null: never.
    void speculate(std::unique_ptr<speculative::Speculator> speculator);
    /// Drafts at most `most` tokens, fewer where more would not pay; how many. Requires answering().
    std::int64_t draft(std::int64_t most, speculative::StepBudget& budget);
    /// The tokens of a step that begins: so many of those that lack, or all of them and as many of the draft.
    std::span<const TokenId> begin_step(std::int64_t tokens);
    /// Drafted tokens of the step that runs.
    std::int64_t drafted() const { return window_.drafted(); }
    /// Whether a token is to be drawn from the logits behind this token of the step.
    bool draws(std::int64_t index) const { return !over_ && window_.draws(index); }
    /// Draws a token from the logits of the last one and tells the reader. The reason where it was the last.
    std::optional<FinishReason> draw(std::span<const float> logits, SteadyTime now);
    /// The step has ended: takes back what the sequence holds of a draft that did not come true. How many
    /// drafted tokens did.
    std::int64_t end_step();
    /// Collects a hidden state of the prompt for the embedding.
    void pool(std::span<const float> hidden, bool last);

    /// Tells the reader that it is over. Once.
    void finish(FinishReason reason, SteadyTime now);
    void fail(ErrorCode code, std::string message);
    bool over() const { return over_; }

    /// Held by whoever runs the job.
    std::optional<engine::Sequence> sequence;
    std::optional<Followed> followed;
    std::vector<std::int64_t> snapshots_wanted;  ///< lengths; ascending
    std::int64_t shared_tokens = 0;              ///< held together with another running job

  private:
    std::optional<FinishReason> draw_next(std::span<const float> logits, SteadyTime now);
    TokenId choose(std::span<const float> logits);
    GeneratedToken describe(TokenId token, std::span<const float> logits) const;
    void send(Text text);
    std::vector<float> embedding() const;

    Request request_;
    std::uint64_t number_;
    const Tokenizer& tokenizer_;
    std::int64_t context_;
    std::shared_ptr<EventQueue> events_;
    std::vector<TokenId> tokens_;
    std::unique_ptr<speculative::Speculator> speculator_;  ///< or null
    std::span<const TokenId> draft_;                       ///< behind the tokens; of the speculator
    speculative::Window window_;                           ///< of the step that runs
    AnswerText text_;
    std::vector<double> hidden_sum_;
    Usage usage_;
    SteadyTime submitted_;
    std::optional<SteadyTime> deadline_;
    std::optional<SteadyTime> started_;
    std::optional<SteadyTime> first_token_;
    bool over_ = false;
};

}  // namespace coterie::scheduler
