#include "tokenizer/streaming_detokenizer.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace coterie {

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(tokenizer), options_(options) {}

std::string StreamingDetokenizer::add(TokenId id) {
    std::string_view piece = tokenizer_.piece(id, options_.control);
    if (piece.empty()) return {};
    const bool drops_space = tokenizer_.has_space_prefix() && options_.leading_space == LeadingSpace::Drop;
    if (std::exchange(at_start_, false) && drops_space && piece.starts_with(' ')) piece.remove_prefix(1);
    pending_ += piece;
    return take_certain_text();
}

std::string StreamingDetokenizer::flush() {
    at_start_ = true;
    if (pending_.empty()) return {};
    pending_.clear();
    return std::string(kReplacementCharacter);
}

std::string StreamingDetokenizer::take_certain_text() {
    std::string text;
    std::size_t position = 0;
    while (position < pending_.size()) {
        const Utf8Step step = utf8_step(pending_, position);
        if (step.kind == Utf8Step::Kind::Cut) break;
        if (step.kind == Utf8Step::Kind::Character) {
            text.append(pending_, position, step.bytes);
        } else {
            text += kReplacementCharacter;
        }
        position += step.bytes;
    }
    pending_.erase(0, position);
    return text;
}

}  // namespace coterie
