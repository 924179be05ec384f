#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/vocabulary/vocabulary_data.h"

namespace coterie {

/// The checked token table of a model: texts, types and roles by id, ids by text. Knows no algorithm.
///
/// Beyond what the file says, it settles three things:
/// - tokens that end a generation are of type control even where the file calls them normal
/// (`stop_tokens.h`);
/// - where no `eot_token_id` is given, a token with one of the usual end-of-turn texts has that role;
/// - `llama` vocabularies without ids use 1 (bos), 2 (eos) and 0 (unknown).
class Vocabulary {
  public:
    /// Throws InvalidFile, naming the key and id, for a table that contradicts itself.
    explicit Vocabulary(VocabularyData data);
    Vocabulary(const Vocabulary&) = delete;  // the index by text points into the texts
    Vocabulary& operator=(const Vocabulary&) = delete;

    std::size_t size() const { return data_.tokens.size(); }
    bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }

    /// The token's text as the file writes it. Requires: contains(id), as for all below that take an id.
    const std::string& text(TokenId id) const { return data_.tokens[static_cast<std::size_t>(id)]; }
    TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
    float score(TokenId id) const { return data_.scores[static_cast<std::size_t>(id)]; }

    /// The token with exactly this text, of any type; the lowest id if there are several.
    std::optional<TokenId> find(std::string_view text) const;

    const SpecialTokenIds& special() const { return data_.special; }
    bool is_end_of_generation(TokenId id) const { return ends_generation_[static_cast<std::size_t>(id)]; }
    const std::vector<TokenId>& end_of_generation() const { return end_of_generation_; }

    /// Whether readers see the token's text in an answer: not so for control, unknown and unused tokens. The
    /// structure of harmony messages and the marks of thoughts and calls are shown even where they are
    /// control tokens: a parser of answers needs them.
    bool is_shown(TokenId id) const { return shown_[static_cast<std::size_t>(id)]; }

    /// The file's remaining fields, for the encoders: model, pre, merges, flags.
    const VocabularyData& data() const { return data_; }

  private:
    void check_sizes() const;
    void read_types();
    void index_texts();
    void apply_default_ids();
    void check_ids();
    void settle_stop_tokens();
    void settle_shown_tokens();

    VocabularyData data_;
    std::vector<TokenType> types_;
    std::unordered_map<std::string_view, TokenId> ids_by_text_;
    std::vector<TokenId> end_of_generation_;
    std::vector<bool> ends_generation_;
    std::vector<bool> shown_;
};

}  // namespace coterie
