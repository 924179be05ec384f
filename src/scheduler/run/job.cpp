#include "scheduler/run/job.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace coterie::scheduler {
namespace {

double seconds_between(SteadyTime begin, SteadyTime end) {
    return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Job::Job(Request request, std::uint64_t number, const Tokenizer& tokenizer, std::int64_t context)
    : request_(std::move(request)),
      number_(number),
      tokenizer_(tokenizer),
      context_(context),
      events_(std::make_shared<EventQueue>(request_.bell)),
      tokens_(request_.prompt),
      text_(tokenizer, request_.stop),
      submitted_(std::chrono::steady_clock::now()) {
    usage_.prompt_tokens = prompt_tokens();
    if (request_.limit.count() > 0) deadline_ = submitted_ + request_.limit;
}

std::optional<FinishReason> Job::overdue(SteadyTime now) const {
    if (events_->closed()) return FinishReason::Cancelled;
    if (deadline_ && now >= *deadline_) return FinishReason::TimeLimit;
    return std::nullopt;
}

void Job::start(int slot, std::int64_t cached, SteadyTime now) {
    if (started_) return;
    started_ = now;
    tokens_.reserve(static_cast<std::size_t>(context_));
    usage_.queue_seconds = seconds_between(submitted_, now);
    usage_.cached_tokens = cached;
    events_->push(Started{slot, prompt_tokens(), cached});
}

void Job::report_progress(SteadyTime now) {
    if (answering() || !started_) return;
    events_->push(PromptProgress{prompt_tokens(), usage_.cached_tokens, sequence->length(),
                                 seconds_between(*started_, now)});
}

void Job::speculate(std::unique_ptr<speculative::Speculator> speculator) {
    speculator_ = std::move(speculator);
}

std::int64_t Job::draft(std::int64_t most, speculative::StepBudget& budget) {
    draft_ = {};
    if (!speculator_) return 0;
    const auto length = static_cast<std::int64_t>(tokens_.size());
    most = std::min(most, context_ - length - 1);  // each is computed, and one more drawn behind it
    if (request_.max_tokens >= 0) most = std::min(most, request_.max_tokens - usage_.generated_tokens - 1);
    draft_ = speculator_->draft(tokens_, most, budget);
    return static_cast<std::int64_t>(draft_.size());
}

std::span<const TokenId> Job::begin_step(std::int64_t tokens) {
    const std::span<const TokenId> missing =
        std::span(tokens_).subspan(static_cast<std::size_t>(sequence->length()));
    const std::size_t certain = std::min(missing.size(), static_cast<std::size_t>(tokens));
    const std::size_t drafted = static_cast<std::size_t>(tokens) - certain;
    COTERIE_CHECK(drafted <= draft_.size());
    window_.begin(missing.first(certain), draft_.first(drafted));
    if (certain < missing.size() || is_embedding()) window_.end();
    if (drafted > 0) sequence->snapshot();  // recurrent layers come back to it
    draft_ = {};
    return window_.tokens();
}

std::optional<FinishReason> Job::draw(std::span<const float> logits, SteadyTime now) {
    const std::optional<FinishReason> reason = draw_next(logits, now);
    if (reason) {
        window_.end();
    } else {
        window_.drew(tokens_.back());
    }
    return reason;
}

std::int64_t Job::end_step() {
    if (window_.drafted() == 0) return 0;
    const std::int64_t accepted = window_.accepted();
    speculator_->settle(accepted, window_.rejected());
    usage_.drafted_tokens += window_.drafted();
    usage_.accepted_tokens += accepted;
    const auto held = static_cast<std::int64_t>(tokens_.size()) - 1;  // the last one was drawn, not computed
    if (sequence->length() > held) sequence->truncate(held);
    return accepted;
}

std::optional<FinishReason> Job::draw_next(std::span<const float> logits, SteadyTime now) {
    if (!first_token_) {
        first_token_ = now;
        usage_.prompt_seconds = seconds_between(*started_, now);
        if (request_.generation_limit.count() > 0) {
            const SteadyTime end = now + request_.generation_limit;
            deadline_ = deadline_ ? std::min(*deadline_, end) : end;
        }
        if (request_.max_tokens == 0) return FinishReason::Length;
    }
    const TokenId token = choose(logits);
    tokens_.push_back(token);
    ++usage_.generated_tokens;
    if (request_.stop_at_end_tokens && tokenizer_.is_end_of_generation(token)) return FinishReason::EndToken;
    send(text_.add(describe(token, logits)));
    if (text_.stop_text()) return FinishReason::StopText;
    if (usage_.generated_tokens == request_.max_tokens) return FinishReason::Length;
    if (static_cast<std::int64_t>(tokens_.size()) >= context_) return FinishReason::Length;
    return std::nullopt;
}

TokenId Job::choose(std::span<const float> logits) {
    TokenConstraint* constraint = request_.constraint.get();
    const TokenId token = constraint ? request_.sampler->sample(logits, constraint->allowed())
                                     : request_.sampler->sample(logits);
    request_.sampler->accept(token);
    if (constraint) constraint->accept(token);
    return token;
}

GeneratedToken Job::describe(TokenId token, std::span<const float> logits) const {
    GeneratedToken generated{token, 0.0, {}, 0};
    if (request_.top_log_probabilities < 0) return generated;
    const LogProbabilities probabilities(logits);
    generated.log_probability = probabilities[token];
    if (request_.top_log_probabilities > 0) generated.top = probabilities.top(request_.top_log_probabilities);
    return generated;
}

void Job::send(Text text) {
    if (!request_.wants_tokens && request_.top_log_probabilities < 0) text.tokens.clear();
    if (text.text.empty() && text.tokens.empty()) return;
    events_->push(std::move(text));
}

void Job::pool(std::span<const float> hidden, bool last) {
    if (request_.embedding == Pooling::Last && !last) return;
    hidden_sum_.resize(hidden.size());
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden_sum_[i] += hidden[i];
}

/// Of length 1, as clients that compare by the scalar product expect.
std::vector<float> Job::embedding() const {
    double squares = 0.0;
    for (const double value : hidden_sum_) squares += value * value;
    const double scale = squares > 0.0 ? 1.0 / std::sqrt(squares) : 0.0;
    std::vector<float> unit;
    unit.reserve(hidden_sum_.size());
    for (const double value : hidden_sum_) unit.push_back(static_cast<float>(value * scale));
    return unit;
}

void Job::finish(FinishReason reason, SteadyTime now) {
    if (over_) return;
    over_ = true;
    if (!is_embedding()) send(text_.finish());
    Finished finished;
    finished.reason = reason;
    if (reason == FinishReason::StopText) finished.stop_text = *text_.stop_text();
    if (first_token_) {
        usage_.generation_seconds = seconds_between(*first_token_, now);
    } else if (started_) {
        usage_.prompt_seconds = seconds_between(*started_, now);
    } else {
        usage_.queue_seconds = seconds_between(submitted_, now);
    }
    finished.usage = usage_;
    if (is_embedding()) finished.embedding = embedding();
    events_->push(std::move(finished));
}

void Job::fail(ErrorCode code, std::string message) {
    if (over_) return;
    over_ = true;
    events_->push(Failed{code, std::move(message)});
}

}  // namespace coterie::scheduler
