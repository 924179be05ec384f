#include "sampling/grammar/grammar_vocabulary.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "sampling/grammar/automaton.h"
#include "tokenizer/tokenizer.h"

namespace coterie {
namespace {

/// What the token adds in the automaton's alphabet. A byte FF is no text, but the alphabet's mark around
/// names: a token that brings one along could be taken for a part of a special token, and is never allowed.
std::string spelling(const GrammarToken& token) {
    if (token.bytes.find(grammar::kTokenMark) != std::string_view::npos) return {};
    if (token.kind == GrammarToken::Kind::Text) return std::string(token.bytes);
    if (token.kind == GrammarToken::Kind::Special) return grammar::spell_token(token.bytes);
    return {};
}

}  // namespace

GrammarVocabulary::GrammarVocabulary(std::span<const GrammarToken> tokens) {
    offsets_.push_back(0);
    for (std::size_t id = 0; id < tokens.size(); ++id) {
        const GrammarToken& token = tokens[id];
        const std::string spelled = spelling(token);
        text_ += spelled;
        if (token.kind == GrammarToken::Kind::Special && !spelled.empty())
            special_names_.emplace_back(token.bytes);
        if (token.kind == GrammarToken::Kind::End) end_tokens_.push_back(static_cast<std::int32_t>(id));
        if (text_.size() > std::numeric_limits<std::uint32_t>::max())
            fail(ErrorCode::InvalidFile, "the vocabulary's texts have more than 4 GiB");
        offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
    }
    std::sort(special_names_.begin(), special_names_.end());
    std::vector<grammar::TokenTrie::Entry> entries;
    for (std::int32_t id = 0; id < size(); ++id) {
        if (!bytes(id).empty()) entries.push_back({bytes(id), id});
    }
    trie_ = grammar::TokenTrie(std::move(entries));
}

bool GrammarVocabulary::is_end(std::int32_t token) const {
    return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

bool GrammarVocabulary::has_special(std::string_view name) const {
    return std::binary_search(special_names_.begin(), special_names_.end(), name);
}

std::string_view GrammarVocabulary::bytes(std::int32_t token) const {
    const auto id = static_cast<std::size_t>(token);
    return std::string_view(text_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
}

std::shared_ptr<const GrammarVocabulary> make_grammar_vocabulary(const Tokenizer& tokenizer) {
    using Kind = GrammarToken::Kind;
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    std::vector<GrammarToken> tokens;
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const TokenType type = vocabulary.type(id);
        if (vocabulary.is_end_of_generation(id)) {
            tokens.push_back({Kind::End, {}});
        } else if (type == TokenType::Control) {
            tokens.push_back({Kind::Special, vocabulary.text(id)});
        } else if (type == TokenType::Unknown || type == TokenType::Unused) {
            tokens.push_back({Kind::Never, {}});
        } else {
            tokens.push_back({Kind::Text, tokenizer.piece(id)});
        }
    }
    return std::make_shared<const GrammarVocabulary>(tokens);
}

}  // namespace coterie
