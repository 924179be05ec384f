#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/vocabulary_data.h"

namespace coterie {

/// One algorithm that turns plain text into tokens and tokens into bytes: `ByteLevelBpe` or `SentencePiece`.
/// Shareable by threads.
class FragmentEncoder {
  public:
    virtual ~FragmentEncoder() = default;

    /// Appends the tokens of a stretch of text that holds no special token (the stretch between two of them,
    /// at the most). Any bytes are allowed. Throws InvalidArgument for a byte that the vocabulary cannot
    /// express.
    virtual void encode(std::string_view text, std::vector<TokenId>& ids) const = 0;

    /// The bytes that a normal or byte token stands for. For tokens of other types their text is taken
    /// literally.
    virtual std::string bytes_of(TokenId id) const = 0;
};

}  // namespace coterie
