#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chat/tools/answer_parser.h"
#include "scheduler/answer.h"

namespace coterie::server {

/// More of an answer.
struct AnswerPiece {
    std::vector<AnswerEvent> events;  ///< thoughts, content, calls
    std::vector<scheduler::GeneratedToken> tokens;
};

/// The end of an answer; after it nothing of this one comes.
struct AnswerEnd {
    std::vector<AnswerEvent> events;  ///< what the end itself made certain
    scheduler::Finished finished;
    std::size_t calls = 0;  ///< that the answer made
};

struct AnswerDelta {
    std::size_t answer;
    std::variant<scheduler::Started, scheduler::PromptProgress, AnswerPiece, AnswerEnd> what;
};

/// Reads the answers to one request as they come, each taken apart by a parser of its own.
class AnswerReader {
  public:
    /// One parser per answer; null for raw text, which comes as content. `present` says whether the client is
    /// still there; empty: it is.
    AnswerReader(scheduler::Answers answers, std::vector<std::unique_ptr<AnswerParser>> parsers,
                 std::function<bool()> present);

    /// The next delta; nothing once all answers have ended, or the client has left. `waiting` is called about
    /// once in `patience` while nothing comes. Throws ApiError for an answer that failed, and 503 for one
    /// that was ended before its first token.
    std::optional<AnswerDelta> next(const std::function<void()>& waiting = {});

    /// Whether the client left before the end.
    bool left() const { return left_; }

  private:
    bool client_left();
    AnswerDelta piece(std::size_t answer, scheduler::Text text);
    AnswerDelta end(std::size_t answer, scheduler::Finished finished);

    scheduler::Answers answers_;
    std::vector<std::unique_ptr<AnswerParser>> parsers_;
    std::vector<std::size_t> calls_;
    std::function<bool()> present_;
    std::chrono::steady_clock::time_point asked_;
    std::size_t open_;
    bool left_ = false;
};

}  // namespace coterie::server
