#include "tokenizer/models/sentence_piece.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace coterie {
namespace {

constexpr std::string_view kSpace = "\u2581";

/// The byte that a text like `<0x0A>` names.
std::optional<unsigned char> parse_byte_text(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
    unsigned char byte = 0;
    const char* digits_end = text.data() + 5;
    const auto result = std::from_chars(text.data() + 3, digits_end, byte, 16);
    if (result.ec != std::errc() || result.ptr != digits_end) return std::nullopt;
    return byte;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::string result;
    std::size_t position = 0;
    for (std::size_t found; (found = text.find(from, position)) != std::string::npos;
         position = found + from.size()) {
        result.append(text, position, found - position).append(to);
    }
    text = result.append(text, position);
}

/// Each token's place among the distinct scores, best first, so that merging can compare integers.
std::vector<std::int32_t> rank_scores(const std::vector<float>& scores) {
    std::vector<float> distinct = scores;
    std::sort(distinct.begin(), distinct.end(), std::greater<>());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<std::int32_t> ranks;
    for (const float score : scores) {
        const auto place = std::lower_bound(distinct.begin(), distinct.end(), score, std::greater<>());
        ranks.push_back(static_cast<std::int32_t>(place - distinct.begin()));
    }
    return ranks;
}

}  // namespace

SentencePiece::SentencePiece(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), adds_space_prefix_(vocabulary.data().add_space_prefix.value_or(true)) {
    add_pieces();
    add_byte_tokens();
}

void SentencePiece::add_pieces() {
    const std::vector<float>& scores = vocabulary_.data().scores;
    if (scores.empty()) {
        fail(ErrorCode::InvalidFile,
             "tokenizer.ggml.scores is missing or empty, and a vocabulary with tokenizer.ggml.model 'llama' "
             "needs it");
    }
    const auto not_a_number =
        std::find_if(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
    if (not_a_number != scores.end()) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.scores: entry {} is not a number",
             not_a_number - scores.begin());
    }
    const std::vector<std::int32_t> ranks = rank_scores(scores);
    pieces_.reserve(vocabulary_.size());
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
        const std::string& text = vocabulary_.text(static_cast<TokenId>(id));
        if (vocabulary_.type(static_cast<TokenId>(id)) != TokenType::Normal || text.empty()) continue;
        pieces_.try_emplace(text, Piece{static_cast<TokenId>(id), ranks[id]});
        longest_piece_bytes_ = std::max(longest_piece_bytes_, text.size());
    }
}

void SentencePiece::add_byte_tokens() {
    byte_tokens_.fill(kNoToken);
    const auto count = static_cast<TokenId>(vocabulary_.size());
    for (TokenId id = 0; id < count; ++id) {
        if (vocabulary_.type(id) != TokenType::Byte) continue;
        const auto byte = parse_byte_text(vocabulary_.text(id));
        if (!byte)
            fail(ErrorCode::InvalidFile, "tokenizer.ggml.tokens: byte token {} is not of the form <0xXX>",
                 id);
        byte_tokens_[*byte] = id;
    }
    has_all_bytes_ = std::find(byte_tokens_.begin(), byte_tokens_.end(), kNoToken) == byte_tokens_.end();
}

std::string SentencePiece::escaped(std::string_view text) const {
    std::string result = adds_space_prefix_ ? " " : "";
    result += text;
    replace_all(result, " ", kSpace);
    return result;
}

void SentencePiece::encode(std::string_view text, std::vector<TokenId>& ids) const {
    if (text.empty()) return;
    const std::string prepared = escaped(text);
    const std::string_view view = prepared;
    PairMerger merger;
    for (std::size_t position = 0; position < view.size();) {
        const std::size_t bytes = utf8_step(view, position).bytes;
        merger.add({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(bytes),
                    token_or_none(view.substr(position, bytes))});
        position += bytes;
    }
    merger.merge([&](const MergeSymbol& left, const MergeSymbol& right) {
        return find_merge(view.substr(left.begin, std::size_t{left.bytes} + right.bytes));
    });
    merger.for_each([&](const MergeSymbol& symbol) {
        if (symbol.value != kNoToken) {
            ids.push_back(symbol.value);
        } else {
            emit_unknown(view.substr(symbol.begin, symbol.bytes), ids);
        }
    });
}

std::int32_t SentencePiece::token_or_none(std::string_view piece) const {
    const auto found = pieces_.find(piece);
    return found == pieces_.end() ? kNoToken : found->second.id;
}

std::optional<Merge> SentencePiece::find_merge(std::string_view concatenation) const {
    if (concatenation.size() > longest_piece_bytes_) return std::nullopt;  // keeps hashing short
    const auto found = pieces_.find(concatenation);
    if (found == pieces_.end()) return std::nullopt;
    return Merge{found->second.rank, found->second.id};
}

void SentencePiece::emit_unknown(std::string_view bytes, std::vector<TokenId>& ids) const {
    if (has_all_bytes_) {
        for (const char byte : bytes) ids.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
    } else if (vocabulary_.special().unknown) {
        ids.push_back(*vocabulary_.special().unknown);
    } else {
        fail(ErrorCode::InvalidArgument,
             "the text holds a character that this model's vocabulary cannot express");
    }
}

std::string SentencePiece::bytes_of(TokenId id) const {
    std::string text = vocabulary_.text(id);
    if (vocabulary_.type(id) == TokenType::Normal) replace_all(text, kSpace, " ");
    if (vocabulary_.type(id) == TokenType::Byte) {
        if (const auto byte = parse_byte_text(text)) text = static_cast<char>(*byte);
    }
    return text;
}

}  // namespace coterie
