#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/vocabulary.h"

namespace coterie {

class FragmentEncoder;
class SpecialTokenMatcher;

struct TokenizerOptions {
    /// Replaces the file's `tokenizer.ggml.pre` where not empty: the way out for files with a wrong or
    /// unknown name.
    std::string pre_tokenizer;
};

/// Whether the text of a control token in the input becomes that token.
enum class SpecialTokens {
    Plain,  ///< no: no control token can come out, whatever the text says. For what users write.
    Parse,  ///< yes. For rendered chat templates.
};

/// Whether the vocabulary's rules for the ends of a text apply (`add_bos_token`, `add_eos_token`).
enum class TextEnds {
    Leave,
    Mark,  ///< a text that already begins with the BOS token gets no second one
};

/// Bytes [begin, end) of a text.
struct ByteRange {
    std::size_t begin;
    std::size_t end;
};

struct EncodeOptions {
    SpecialTokens special = SpecialTokens::Plain;
    TextEnds ends = TextEnds::Leave;
    /// With Parse: parts of the text in which control tokens are plain text all the same, ascending and
    /// disjoint. So a template's markers count and the same markers within a user's message do not.
    std::span<const ByteRange> plain_ranges = {};
};

/// Whether tokens that are not shown (control, unknown, unused) appear with their text.
enum class ControlTokens { Hide, Show };

/// What happens to the space with which SentencePiece-like vocabularies begin a text (`add_space_prefix`).
enum class LeadingSpace {
    Drop,  ///< the output is a whole text
    Keep,  ///< the output goes on from a text before it
};

struct DecodeOptions {
    ControlTokens control = ControlTokens::Hide;
    LeadingSpace leading_space = LeadingSpace::Drop;
};

/// Text to tokens and back, as the model's own tokenizer does it. Immutable: any number of threads may share
/// it.
///
/// Encoding goes three steps. Tokens with a fixed text (`special_token_matcher.h`) are cut out: user-defined
/// ones always, control tokens where asked for; at each place from left to right the longest. The stretches
/// between go to the algorithm (`models/`): byte-level BPE, which first cuts them by the family's patterns
/// (`pre_tokenizer/`), or SentencePiece. All is linear in the text's length, but for the logarithm of the
/// longest fragment's. Any bytes are accepted, well-formed UTF-8 or not.
class Tokenizer {
  public:
    /// Throws InvalidFile for a damaged vocabulary, Unsupported for an algorithm or pre-tokenizer that is not
    /// known.
    explicit Tokenizer(VocabularyData data, const TokenizerOptions& options = {});
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    /// At most kMaxTextBytes bytes (InvalidArgument).
    std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
    static constexpr std::size_t kMaxTextBytes = std::size_t{512} << 20;

    /// The bytes of the ids, one after another; not always UTF-8. `StreamingDetokenizer` gives text.
    /// Throws InvalidArgument for an id that is not in the vocabulary, as do the two below.
    std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;

    /// The bytes of one token, a leading space included.
    std::string_view piece(TokenId id, ControlTokens control = ControlTokens::Show) const;

    bool is_end_of_generation(TokenId id) const;

    const Vocabulary& vocabulary() const { return vocabulary_; }
    std::size_t vocabulary_size() const { return vocabulary_.size(); }
    std::optional<TokenId> bos() const { return vocabulary_.special().bos; }
    std::optional<TokenId> eos() const { return vocabulary_.special().eos; }
    bool adds_bos() const { return adds_bos_; }
    bool adds_eos() const { return adds_eos_; }

    /// Whether decoded texts begin with a space that was never in them.
    bool has_space_prefix() const { return has_space_prefix_; }

  private:
    void make_byte_level_bpe(const TokenizerOptions& options);
    void make_sentence_piece();
    void settle_ends(bool default_bos);
    void store_pieces();
    void check_id(TokenId id) const;
    void mark_ends(std::vector<TokenId>& ids) const;

    Vocabulary vocabulary_;
    std::unique_ptr<const FragmentEncoder> encoder_;
    std::unique_ptr<const SpecialTokenMatcher> user_defined_tokens_;
    std::unique_ptr<const SpecialTokenMatcher> all_special_tokens_;
    std::vector<std::string> pieces_;  ///< bytes by id
    bool adds_bos_ = false;
    bool adds_eos_ = false;
    bool has_space_prefix_ = false;
};

}  // namespace coterie
