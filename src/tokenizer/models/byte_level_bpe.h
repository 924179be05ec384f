#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "tokenizer/models/fragment_encoder.h"
#include "tokenizer/models/pair_merger.h"
#include "tokenizer/pre_tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace coterie {

/// GPT-2's byte-level byte-pair encoding (`model` = `gpt2`): the pre-tokenizer cuts the text into fragments;
/// in each, single bytes are merged in the order of the vocabulary's merge list.
///
/// Only normal tokens can come out. A merge whose result is a token of another type does not exist for plain
/// text; a merge whose result is no token at all is made, and comes out byte by byte unless it merges on.
class ByteLevelBpe : public FragmentEncoder {
  public:
    /// Throws InvalidFile where the merge list is missing or malformed. Requires: `vocabulary` outlives this.
    ByteLevelBpe(const Vocabulary& vocabulary, const PreTokenizerFamily& family);

    void encode(std::string_view text, std::vector<TokenId>& ids) const override;
    std::string bytes_of(TokenId id) const override;

  private:
    using Symbol =
        std::int32_t;  ///< numbers every distinct byte string that occurs as token, merge or merge's part

    struct PairHash {
        std::size_t operator()(std::uint64_t pair) const;
    };
    struct BytesHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>{}(bytes); }
    };
    using SymbolTable = std::unordered_map<std::string, Symbol, BytesHash, std::equal_to<>>;

    void add_bytes();
    void add_tokens();
    void add_merges();
    void add_merge(std::string_view left, std::string_view right, std::int32_t rank);
    Symbol symbol_for(const std::string& bytes);

    void encode_fragment(std::string_view fragment, PairMerger& merger, std::vector<TokenId>& ids) const;
    void emit(Symbol symbol, std::string_view bytes, std::vector<TokenId>& ids) const;
    std::optional<Merge> find_merge(Symbol left, Symbol right) const;

    const Vocabulary& vocabulary_;
    PreTokenizer pre_tokenizer_;
    bool ignores_merges_;
    SymbolTable symbols_;
    std::vector<TokenId> token_of_symbol_;  ///< -1: no token; symbols 0 to 255 are the single bytes
    std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
};

}  // namespace coterie
