#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace coterie {

/// Turns an answer's tokens into text as they come. What it returns is well-formed UTF-8 at every step: the
/// start of a character whose end is still to come is held back, and bytes that cannot be a character become
/// U+FFFD.
class StreamingDetokenizer {
  public:
    /// An answer goes on from its prompt, hence LeadingSpace::Keep is right for it in most cases; the default
    /// is for texts of their own. Requires: `tokenizer` outlives this.
    explicit StreamingDetokenizer(const Tokenizer& tokenizer, const DecodeOptions& options = {});

    /// The text that is certain after this token; often empty. Throws InvalidArgument for an id out of range.
    std::string add(TokenId id);

    /// Ends the text: a character that is still cut off becomes U+FFFD. Ready for a new text afterwards.
    std::string flush();

  private:
    std::string take_certain_text();

    const Tokenizer& tokenizer_;
    DecodeOptions options_;
    bool at_start_ = true;
    std::string pending_;  ///< bytes not yet returned; between calls at most the first 3 of a character
};

}  // namespace coterie
