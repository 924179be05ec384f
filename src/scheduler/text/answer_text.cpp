#include "scheduler/text/answer_text.h"

#include <utility>

namespace coterie::scheduler {

AnswerText::AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stops)
    : detokenizer_(tokenizer, {.control = ControlTokens::Hide, .leading_space = LeadingSpace::Keep}),
      matcher_(std::move(stops)) {}

Text AnswerText::add(GeneratedToken token) {
    const std::string piece = detokenizer_.add(token.id);
    decoded_bytes_ += piece.size();
    token.text_end = decoded_bytes_;
    held_.push_back(std::move(token));
    return release(matcher_.feed(piece), false);
}

Text AnswerText::finish() {
    std::string rest = matcher_.feed(detokenizer_.flush());
    rest += matcher_.finish();
    return release(std::move(rest), !matcher_.matched());
}

Text AnswerText::release(std::string text, bool all) {
    released_bytes_ += text.size();
    Text out{std::move(text), {}};
    while (!held_.empty() && (all || held_.front().text_end <= released_bytes_)) {
        out.tokens.push_back(std::move(held_.front()));
        held_.pop_front();
    }
    return out;
}

}  // namespace coterie::scheduler
