#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/event.h"
#include "scheduler/text/stop_matcher.h"
#include "tokenizer/streaming_detokenizer.h"

namespace coterie::scheduler {

/// The text of an answer while its tokens come: whole characters, up to a stop text, together with the tokens
/// that they stand in.
class AnswerText {
  public:
    AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops);

    /// What is certain after this token. A token goes out with the last text that it has a part in.
    Text add(GeneratedToken token);
    /// The end of the answer: what was held back.
    Text finish();

    const std::optional<std::string>& stop_text() const { return matcher_.matched(); }

  private:
    Text release(std::string text, bool all);

    StreamingDetokenizer detokenizer_;
    StopMatcher matcher_;
    std::deque<GeneratedToken> held_;  ///< tokens whose text is not out yet
    std::size_t decoded_bytes_ = 0;
    std::size_t released_bytes_ = 0;
};

}  // namespace coterie::scheduler
