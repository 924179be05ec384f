#include "server/service/late_end.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace coterie::server {
namespace {

class LateEnd final : public scheduler::TokenConstraint {
  public:
    LateEnd(std::unique_ptr<scheduler::TokenConstraint> constraint, std::span<const TokenId> end_tokens)
        : constraint_(std::move(constraint)), end_tokens_(end_tokens.begin(), end_tokens.end()) {}

    std::span<const std::uint64_t> allowed() override {
        const std::span<const std::uint64_t> all = constraint_->allowed();
        without_ends_.assign(all.begin(), all.end());
        for (const TokenId token : end_tokens_) {
            const auto word = static_cast<std::size_t>(token) / 64;
            if (word < without_ends_.size()) without_ends_[word] &= ~(std::uint64_t{1} << (token % 64));
        }
        const bool must_end =
            std::ranges::all_of(without_ends_, [](std::uint64_t word) { return word == 0; });
        return must_end ? all : without_ends_;
    }

    void accept(TokenId token) override { constraint_->accept(token); }

  private:
    std::unique_ptr<scheduler::TokenConstraint> constraint_;
    std::vector<TokenId> end_tokens_;
    std::vector<std::uint64_t> without_ends_;
};

}  // namespace

std::unique_ptr<scheduler::TokenConstraint> end_late(std::unique_ptr<scheduler::TokenConstraint> constraint,
                                                     std::span<const TokenId> end_tokens) {
    return std::make_unique<LateEnd>(std::move(constraint), end_tokens);
}

}  // namespace coterie::server
