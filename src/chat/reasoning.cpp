#include "chat/reasoning.h"

#include <algorithm>
#include <utility>

namespace coterie {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

constexpr ReasoningTags kFamilies[] = {
    {"<think>", "</think>"},
    {"<seed:think>", "</seed:think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
};

std::size_t skip_space(std::string_view text) {
    return std::min(text.find_first_not_of(kSpace), text.size());
}

}  // namespace

ReasoningTags find_reasoning_tags(std::string_view template_source) {
    for (const ReasoningTags& tags : kFamilies) {
        if (template_source.find(tags.close) != std::string_view::npos) return tags;
    }
    return {};
}

AnswerStart answer_start(std::string_view prompt, const ReasoningTags& tags) {
    const std::size_t last = prompt.find_last_not_of(kSpace);
    if (last == std::string_view::npos) return AnswerStart::Content;
    return prompt.substr(0, last + 1).ends_with(tags.open) ? AnswerStart::Reasoning : AnswerStart::Content;
}

ReasoningSplitter::ReasoningSplitter(const ReasoningTags& tags, AnswerStart start)
    : tags_(tags), state_(start == AnswerStart::Reasoning ? State::BeforeReasoning : State::BeforeAnswer) {}

ReasoningDelta ReasoningSplitter::feed(std::string_view text) {
    pending_ += text;
    ReasoningDelta delta;
    while (step(delta)) continue;
    return delta;
}

ReasoningDelta ReasoningSplitter::finish() {
    ReasoningDelta delta;
    std::string rest = std::exchange(pending_, {});
    if (state_ == State::InReasoning || state_ == State::BeforeReasoning) {
        rest.resize(rest.find_last_not_of(kSpace) + 1);
        delta.reasoning = std::move(rest);
    } else if (state_ != State::BeforeContent) {
        delta.content = std::move(rest);
    }
    return delta;
}

/// Consumes some of the pending text; false when nothing more can be said without further text.
bool ReasoningSplitter::step(ReasoningDelta& delta) {
    if (pending_.empty()) return false;
    switch (state_) {
        case State::BeforeAnswer:
            return step_before_answer();
        case State::BeforeReasoning:
            return step_before_reasoning();
        case State::InReasoning:
            return step_in_reasoning(delta);
        case State::BeforeContent:
            pending_.erase(0, skip_space(pending_));
            if (!pending_.empty()) state_ = State::InContent;
            return !pending_.empty();
        case State::InContent:
            delta.content += std::exchange(pending_, {});
            return false;
    }
    return false;
}

/// A closing tag may come first where the prompt has already closed the thoughts and the model does so again.
bool ReasoningSplitter::step_before_answer() {
    const std::size_t space = skip_space(pending_);
    const std::string_view text = std::string_view(pending_).substr(space);
    const Match open = match(text, tags_.open);
    const Match close = match(text, tags_.close);
    if (open == Match::Whole) {
        enter(State::BeforeReasoning, space + tags_.open.size());
    } else if (close == Match::Whole) {
        enter(State::BeforeContent, space + tags_.close.size());
    } else if (open == Match::No && close == Match::No) {
        enter(State::InContent, 0);
    } else {
        return false;
    }
    return true;
}

/// Models whose prompt has opened the tag may open it again.
bool ReasoningSplitter::step_before_reasoning() {
    pending_.erase(0, skip_space(pending_));
    if (pending_.empty()) return false;
    switch (match(pending_, tags_.open)) {
        case Match::Whole:
            enter(State::BeforeReasoning, tags_.open.size());
            return true;
        case Match::No:
            state_ = State::InReasoning;
            return true;
        case Match::Partly:
            return false;
    }
    return false;
}

/// Gives out all but what may be the start of the closing tag and the white space before it.
bool ReasoningSplitter::step_in_reasoning(ReasoningDelta& delta) {
    const std::size_t close = pending_.find(tags_.close);
    std::size_t end = close;
    if (close == std::string::npos) {
        end = pending_.size() - std::min(pending_.size(), tags_.close.size() - 1);
        while (end < pending_.size() &&
               match(std::string_view(pending_).substr(end), tags_.close) == Match::No) {
            ++end;
        }
    }
    const std::size_t text = std::string_view(pending_).substr(0, end).find_last_not_of(kSpace) + 1;
    delta.reasoning += pending_.substr(0, text);
    if (close == std::string::npos) {
        pending_.erase(0, text);
        return false;
    }
    enter(State::BeforeContent, close + tags_.close.size());
    return true;
}

/// Partly: the text is a true prefix of the tag (or empty), so that more text decides.
ReasoningSplitter::Match ReasoningSplitter::match(std::string_view text, std::string_view tag) {
    if (text.starts_with(tag)) return Match::Whole;
    return tag.starts_with(text) ? Match::Partly : Match::No;
}

void ReasoningSplitter::enter(State state, std::size_t consumed) {
    pending_.erase(0, consumed);
    state_ = state;
}

}  // namespace coterie
