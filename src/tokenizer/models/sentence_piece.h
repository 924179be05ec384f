#pragma once

#include <array>
#include <unordered_map>

#include "tokenizer/models/fragment_encoder.h"
#include "tokenizer/models/pair_merger.h"
#include "tokenizer/vocabulary/vocabulary.h"

namespace coterie {

/// SentencePiece-like encoding (`model` = `llama`): spaces become U+2581, and of all neighbours whose
/// concatenation is a token those merge first that have the best score. Characters that are no token come out
/// as byte tokens, or as the unknown token where the vocabulary has no byte tokens.
///
/// With `add_space_prefix` every stretch of text is read as if a space stood before it: the start of the
/// text, and what follows a special token. Decoders drop that space again where it would begin the output.
class SentencePiece : public FragmentEncoder {
  public:
    /// Throws InvalidFile where scores are missing or not a number, or a byte token names no byte. Requires:
    /// `vocabulary` outlives this.
    explicit SentencePiece(const Vocabulary& vocabulary);

    void encode(std::string_view text, std::vector<TokenId>& ids) const override;
    std::string bytes_of(TokenId id) const override;

    bool adds_space_prefix() const { return adds_space_prefix_; }

  private:
    struct Piece {
        TokenId id;
        std::int32_t rank;  ///< among all scores, the best one being 0; equal scores share a rank
    };

    void add_pieces();
    void add_byte_tokens();
    std::string escaped(std::string_view text) const;
    std::int32_t token_or_none(std::string_view piece) const;
    std::optional<Merge> find_merge(std::string_view concatenation) const;
    void emit_unknown(std::string_view bytes, std::vector<TokenId>& ids) const;

    const Vocabulary& vocabulary_;
    bool adds_space_prefix_;
    std::unordered_map<std::string_view, Piece> pieces_;  ///< keys point into the vocabulary
    std::size_t longest_piece_bytes_ = 0;
    std::array<TokenId, 256> byte_tokens_;
    bool has_all_bytes_ = false;
};

}  // namespace coterie
