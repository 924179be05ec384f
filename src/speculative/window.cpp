#include "speculative/window.h"

#include "base/error.h"

namespace coterie::speculative {

void Window::begin(std::span<const TokenId> certain, std::span<const TokenId> draft) {
    COTERIE_CHECK(!certain.empty());
    tokens_.assign(certain.begin(), certain.end());
    tokens_.insert(tokens_.end(), draft.begin(), draft.end());
    certain_ = static_cast<std::int64_t>(certain.size());
    accepted_ = 0;
    rejected_ = over_ = false;
}

void Window::drew(TokenId token) {
    const auto next = static_cast<std::size_t>(certain_ + accepted_);
    if (next == tokens_.size()) {
        over_ = true;
    } else if (tokens_[next] == token) {
        ++accepted_;
    } else {
        rejected_ = over_ = true;
    }
}

}  // namespace coterie::speculative
