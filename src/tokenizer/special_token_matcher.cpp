#include "tokenizer/special_token_matcher.h"

#include <algorithm>

#include "base/error.h"

namespace coterie {
namespace {

bool is_wanted(TokenType type, SpecialTokenMatcher::Tokens tokens) {
    if (type == TokenType::UserDefined) return true;
    const bool is_control = type == TokenType::Control || type == TokenType::Unknown;
    return is_control && tokens == SpecialTokenMatcher::Tokens::All;
}

unsigned char byte_at(std::string_view text, std::size_t position) {
    return static_cast<unsigned char>(text[position]);
}

}  // namespace

SpecialTokenMatcher::SpecialTokenMatcher(const Vocabulary& vocabulary, Tokens tokens) {
    const auto count = static_cast<TokenId>(vocabulary.size());
    for (TokenId id = 0; id < count; ++id) {
        const std::string_view text = vocabulary.text(id);
        if (!is_wanted(vocabulary.type(id), tokens) || vocabulary.find(text) != id) continue;
        if (text.size() > kMaxTokenBytes) {
            fail(ErrorCode::Unsupported,
                 "tokenizer.ggml.tokens: special token {} has {} bytes; {} are supported", id, text.size(),
                 kMaxTokenBytes);
        }
        entries_.push_back({text, id});
        starts_[byte_at(text, 0)] = true;
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

std::optional<SpecialTokenMatcher::Match> SpecialTokenMatcher::match_at(std::string_view text,
                                                                        std::size_t position) const {
    if (!starts_[byte_at(text, position)]) return std::nullopt;
    std::optional<Match> longest;
    auto low = entries_.begin();  // [low, high) share their first `depth` bytes with the text
    auto high = entries_.end();
    for (std::size_t depth = 0; low != high; ++depth) {
        if (low->text.size() == depth) {  // the shortest of them stands first
            longest = Match{low->id, depth};
            if (++low == high) break;
        }
        if (position + depth == text.size()) break;
        const unsigned char byte = byte_at(text, position + depth);
        low = std::partition_point(low, high, [&](const Entry& e) { return byte_at(e.text, depth) < byte; });
        high =
            std::partition_point(low, high, [&](const Entry& e) { return byte_at(e.text, depth) == byte; });
    }
    return longest;
}

}  // namespace coterie
