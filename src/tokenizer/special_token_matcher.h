#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/vocabulary.h"

namespace coterie {

/// Finds tokens that are recognised by their text before any merging, the longest one at a place.
///
/// A walk over the sorted texts: one place costs a few comparisons per byte of the longest text that starts
/// like it, so a whole text costs time linear in its length, however many special tokens the vocabulary or
/// the text has.
class SpecialTokenMatcher {
  public:
    enum class Tokens {
        UserDefined,  ///< what is one token in any text
        All,          ///< control and unknown tokens too
    };

    struct Match {
        TokenId id;
        std::size_t bytes;
    };

    /// Texts longer than this are refused (Unsupported): they would make matching slow, and no model has
    /// them.
    static constexpr std::size_t kMaxTokenBytes = 1024;

    /// Requires: `vocabulary` outlives this.
    SpecialTokenMatcher(const Vocabulary& vocabulary, Tokens tokens);

    /// The longest token whose text stands at `position`.
    std::optional<Match> match_at(std::string_view text, std::size_t position) const;

  private:
    struct Entry {
        std::string_view text;
        TokenId id;
    };
    std::vector<Entry> entries_;      ///< sorted by text, each text once
    std::array<bool, 256> starts_{};  ///< bytes with which some text starts
};

}  // namespace coterie
