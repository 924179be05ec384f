#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "speculative/drafter.h"

namespace coterie::speculative {

/// Finds the longest stretch of at least `ngram` tokens that ends the text and stands earlier in it too, the
/// latest of equals, and guesses that what followed it follows again. Where that reaches the end of the text
/// it goes on with its own guess, so that a text that repeats itself is drafted to full length.
///
/// Every position is chained to the one before whose `ngram` tokens have the same hash; a search follows such
/// a chain for a bounded number of links.
class NgramDrafter final : public Drafter {
  public:
    NgramDrafter(std::int64_t ngram, std::int64_t most, std::int64_t context);

    std::span<const TokenId> draft(std::span<const TokenId> tokens, std::int64_t most) override;

  private:
    using Position = std::int32_t;
    static constexpr Position kNone = -1;

    Position& head(std::span<const TokenId> ngram);
    void index(std::span<const TokenId> tokens);
    Position longest_match(std::span<const TokenId> tokens);

    std::size_t ngram_;
    std::vector<Position> heads_;     ///< the latest position of a hash; its size is a power of two
    std::vector<Position> previous_;  ///< [indexed positions]: the one before of the same hash
    std::vector<TokenId> draft_;
};

}  // namespace coterie::speculative
