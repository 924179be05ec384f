#include "sampling/dry_breakers.h"

#include <algorithm>

#include "base/error.h"

namespace coterie {
namespace {

void add_tokens(std::string_view breaker, std::int32_t vocabulary,
                FunctionRef<std::string_view(std::int32_t)> piece, std::vector<std::int32_t>& tokens) {
    bool contained = false;
    std::int32_t ending = -1;
    std::size_t ending_bytes = 0;
    for (std::int32_t token = 0; token < vocabulary; ++token) {
        const std::string_view text = piece(token);
        if (text.find(breaker) != std::string_view::npos) {
            contained = true;
            tokens.push_back(token);
        } else if (text.size() > ending_bytes && breaker.ends_with(text)) {
            ending = token;
            ending_bytes = text.size();
        }
    }
    if (!contained && ending >= 0) tokens.push_back(ending);
}

}  // namespace

std::vector<std::int32_t> dry_breaker_tokens(std::span<const std::string> breakers, std::int32_t vocabulary,
                                             FunctionRef<std::string_view(std::int32_t)> piece) {
    std::vector<std::int32_t> tokens;
    for (const std::string& breaker : breakers) {
        if (breaker.empty()) fail(ErrorCode::InvalidArgument, "dry_sequence_breakers: a breaker is empty");
        add_tokens(breaker, vocabulary, piece, tokens);
    }
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens;
}

}  // namespace coterie
