#pragma once

#include <cstdint>
#include <span>

#include "tokenizer/tokenizer.h"

namespace coterie::scheduler {

/// What an answer may say, token by token: a grammar's state while one answer is written.
class TokenConstraint {
  public:
    virtual ~TokenConstraint() = default;

    /// Bit t % 64 of word t / 64 is set where token t may come next. At least one bit is set. Valid until the
    /// next call of `accept`.
    virtual std::span<const std::uint64_t> allowed() = 0;

    /// The answer goes on with a token that was allowed.
    virtual void accept(TokenId token) = 0;
};

}  // namespace coterie::scheduler
