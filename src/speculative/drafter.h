#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "speculative/options.h"
#include "tokenizer/tokenizer.h"

namespace coterie::speculative {

/// Guesses how one text goes on, for far less than the model takes. The model computes every guessed token
/// all the same, several in one step, and those that it would not have written are dropped: a wrong guess
/// costs time and never changes the text.
class Drafter {
  public:
    virtual ~Drafter() = default;

    /// At most `most` tokens that may follow `tokens`; none where it has no idea. Each call's tokens begin
    /// with those of the call before. Valid until the next call.
    virtual std::span<const TokenId> draft(std::span<const TokenId> tokens, std::int64_t most) = 0;
};

/// A drafter for texts of up to `context` tokens; null for DraftSource::None. Drafting then allocates
/// nothing.
std::unique_ptr<Drafter> make_drafter(const SpeculativeOptions& options, std::int64_t context);

}  // namespace coterie::speculative
