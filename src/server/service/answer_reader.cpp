#include "server/service/answer_reader.h"

#include <algorithm>
#include <utility>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

constexpr std::chrono::milliseconds kPatience{250};

std::size_t count_calls(const std::vector<AnswerEvent>& events) {
    return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [](const AnswerEvent& event) {
        return event.kind == AnswerEvent::Kind::CallBegin;
    }));
}

/// An answer that was ended before it began is none.
void require_begun(const scheduler::Finished& finished) {
    if (finished.usage.generated_tokens > 0) return;
    if (finished.reason == scheduler::FinishReason::TimeLimit) {
        throw ApiError(503, "the time for this request was over before its answer began; try again later", {},
                       "timeout");
    }
    if (finished.reason == scheduler::FinishReason::Cancelled) {
        throw ApiError(503, "the server is shutting down", {}, "shutting_down");
    }
}

}  // namespace

AnswerReader::AnswerReader(scheduler::Answers answers, std::vector<std::unique_ptr<AnswerParser>> parsers,
                           std::function<bool()> present)
    : answers_(std::move(answers)),
      parsers_(std::move(parsers)),
      calls_(answers_.size()),
      present_(std::move(present)),
      open_(answers_.size()) {
    parsers_.resize(answers_.size());
}

std::optional<AnswerDelta> AnswerReader::next(const std::function<void()>& waiting) {
    while (open_ > 0) {
        if (client_left()) return std::nullopt;
        auto arrival = answers_.next(kPatience);
        if (!arrival) {
            if (waiting) waiting();
            continue;
        }
        const std::size_t answer = arrival->answer;
        scheduler::Event& event = arrival->event;
        if (auto* text = std::get_if<scheduler::Text>(&event)) return piece(answer, std::move(*text));
        if (auto* finished = std::get_if<scheduler::Finished>(&event))
            return end(answer, std::move(*finished));
        if (auto* started = std::get_if<scheduler::Started>(&event)) return AnswerDelta{answer, *started};
        if (auto* progress = std::get_if<scheduler::PromptProgress>(&event))
            return AnswerDelta{answer, *progress};
        const auto& failed = std::get<scheduler::Failed>(event);
        throw ApiError(http_status(failed.code), failed.message);
    }
    return std::nullopt;
}

/// Asks the connection now and then, however fast the answer comes.
bool AnswerReader::client_left() {
    const auto now = std::chrono::steady_clock::now();
    if (!present_ || now - asked_ < kPatience / 2) return false;
    asked_ = now;
    left_ = !present_();
    return left_;
}

AnswerDelta AnswerReader::piece(std::size_t answer, scheduler::Text text) {
    AnswerPiece piece{{}, std::move(text.tokens)};
    if (!parsers_[answer]) {
        if (!text.text.empty()) piece.events.push_back({AnswerEvent::Kind::Content, std::move(text.text)});
    } else {
        parsers_[answer]->feed(text.text, piece.events);
    }
    calls_[answer] += count_calls(piece.events);
    return {answer, std::move(piece)};
}

AnswerDelta AnswerReader::end(std::size_t answer, scheduler::Finished finished) {
    require_begun(finished);
    AnswerEnd end{{}, std::move(finished), 0};
    if (parsers_[answer]) parsers_[answer]->finish(end.events);
    calls_[answer] += count_calls(end.events);
    end.calls = calls_[answer];
    --open_;
    return {answer, std::move(end)};
}

}  // namespace coterie::server
