#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace coterie::speculative {

/// One text's tokens in a step: those that it has, then a draft of what may follow. The logits behind each of
/// them give the next token as long as what was drawn before is what was drafted.
///
///     window.begin(certain, draft);
///     for each row of logits: if (window.draws(row)) window.drew(draw(logits));
///     what the model holds beyond the text's own tokens is then taken back.
class Window {
  public:
    /// Requires: certain not empty.
    void begin(std::span<const TokenId> certain, std::span<const TokenId> draft);

    std::span<const TokenId> tokens() const { return tokens_; }
    std::int64_t drafted() const { return static_cast<std::int64_t>(tokens_.size()) - certain_; }

    /// Whether the text goes on from the logits behind the token of this index.
    bool draws(std::int64_t index) const { return !over_ && index == certain_ - 1 + accepted_; }
    void drew(TokenId token);
    /// The text ended with what was drawn last, or before.
    void end() { over_ = true; }

    /// Drafted tokens that were drawn.
    std::int64_t accepted() const { return accepted_; }
    /// Whether another token than the drafted one was drawn.
    bool rejected() const { return rejected_; }

  private:
    std::vector<TokenId> tokens_;
    std::int64_t certain_ = 0;
    std::int64_t accepted_ = 0;
    bool rejected_ = false;
    bool over_ = true;
};

}  // namespace coterie::speculative
