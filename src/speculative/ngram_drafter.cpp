#include "speculative/ngram_drafter.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace coterie::speculative {
namespace {

constexpr int kLinks = 64;               ///< of a chain that a search follows
constexpr std::size_t kLongEnough = 64;  ///< tokens of a match; longer ones are not told apart

/// FNV-1a over whole tokens, its upper bits folded in.
std::size_t hash(std::span<const TokenId> tokens) {
    std::uint64_t value = 0xcbf29ce484222325u;
    for (const TokenId token : tokens) value = (value ^ static_cast<std::uint32_t>(token)) * 0x100000001b3u;
    return static_cast<std::size_t>(value ^ (value >> 32));
}

/// Tokens before the two ends that are equal; `earlier` < `later`.
std::size_t common_suffix(std::span<const TokenId> tokens, std::size_t earlier, std::size_t later) {
    const std::size_t most = std::min(earlier, kLongEnough);
    std::size_t length = 0;
    while (length < most && tokens[earlier - 1 - length] == tokens[later - 1 - length]) ++length;
    return length;
}

}  // namespace

NgramDrafter::NgramDrafter(std::int64_t ngram, std::int64_t most, std::int64_t context)
    : ngram_(static_cast<std::size_t>(ngram)) {
    COTERIE_CHECK(ngram >= 1 && most >= 1 && context >= 1 && context < std::numeric_limits<Position>::max());
    heads_.assign(std::bit_ceil(static_cast<std::size_t>(context)), kNone);
    previous_.reserve(static_cast<std::size_t>(context));
    draft_.reserve(static_cast<std::size_t>(most));
}

NgramDrafter::Position& NgramDrafter::head(std::span<const TokenId> ngram) {
    return heads_[hash(ngram) & (heads_.size() - 1)];
}

/// All n-grams but the one that ends the text, which nothing follows yet.
void NgramDrafter::index(std::span<const TokenId> tokens) {
    while (previous_.size() + ngram_ < tokens.size()) {
        const std::size_t position = previous_.size();
        Position& latest = head(tokens.subspan(position, ngram_));
        previous_.push_back(latest);
        latest = static_cast<Position>(position);
    }
}

/// Where the longest match ends, which is where what followed it begins; kNone without one.
NgramDrafter::Position NgramDrafter::longest_match(std::span<const TokenId> tokens) {
    Position best = kNone;
    std::size_t longest = ngram_ - 1;
    Position at = head(tokens.last(ngram_));
    for (int link = 0; link < kLinks && at != kNone; ++link) {
        const std::size_t end = static_cast<std::size_t>(at) + ngram_;
        const std::size_t length = common_suffix(tokens, end, tokens.size());
        if (length > longest) {
            longest = length;
            best = static_cast<Position>(end);
        }
        at = previous_[static_cast<std::size_t>(at)];
    }
    return best;
}

std::span<const TokenId> NgramDrafter::draft(std::span<const TokenId> tokens, std::int64_t most) {
    draft_.clear();
    if (tokens.size() <= ngram_ || most <= 0) return draft_;
    index(tokens);
    const Position begin = longest_match(tokens);
    if (begin == kNone) return draft_;
    const std::size_t count = std::min(static_cast<std::size_t>(most), draft_.capacity());
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = static_cast<std::size_t>(begin) + i;
        draft_.push_back(from < tokens.size() ? tokens[from] : draft_[from - tokens.size()]);
    }
    return draft_;
}

}  // namespace coterie::speculative
