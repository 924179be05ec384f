#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/token_trie.h"

namespace coterie {

class Tokenizer;

/// One token as a grammar sees it.
struct GrammarToken {
    enum class Kind {
        Text,     ///< stands for its bytes
        Special,  ///< has a name and no text: only a grammar that names it allows it
        End,      ///< ends the answer: allowed where the grammar may end
        Never,    ///< never allowed
    };
    Kind kind;
    std::string_view bytes;  ///< of Text the bytes, of Special the name
};

/// A model's tokens, arranged for masks. Made once per model (some ten milliseconds for 150,000 tokens),
/// immutable, shared by all requests.
class GrammarVocabulary {
  public:
    /// `tokens` by id; their bytes are copied. Text tokens without bytes count as Never, and so
    /// do tokens with a byte FF, which no UTF-8 has and by which grammars tell special tokens from text.
    explicit GrammarVocabulary(std::span<const GrammarToken> tokens);

    std::int64_t size() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    /// Words of a mask: bit `id % 64` of word `id / 64` is token `id`.
    std::size_t mask_words() const { return (offsets_.size() - 1 + 63) / 64; }
    const grammar::TokenTrie& trie() const { return trie_; }
    std::span<const std::int32_t> end_tokens() const { return end_tokens_; }
    bool is_end(std::int32_t token) const;
    bool has_special(std::string_view name) const;

    /// What the token adds to an answer in the automaton's alphabet (automaton.h); empty for End and Never.
    /// Requires: 0 <= token < size().
    std::string_view bytes(std::int32_t token) const;

  private:
    std::string text_;  ///< of all tokens, one after another
    std::vector<std::uint32_t> offsets_;
    std::vector<std::int32_t> end_tokens_;    ///< ascending
    std::vector<std::string> special_names_;  ///< sorted
    grammar::TokenTrie trie_;
};

/// A tokenizer's vocabulary: shown tokens are Text, end tokens End, other control tokens Special.
std::shared_ptr<const GrammarVocabulary> make_grammar_vocabulary(const Tokenizer& tokenizer);

}  // namespace coterie
