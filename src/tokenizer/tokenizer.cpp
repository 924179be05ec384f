#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/models/byte_level_bpe.h"
#include "tokenizer/models/pair_merger.h"
#include "tokenizer/models/sentence_piece.h"
#include "tokenizer/special_token_matcher.h"

namespace coterie {
namespace {

// A space becomes the three bytes of U+2581, and one more may be put in front.
static_assert(3 * (Tokenizer::kMaxTextBytes + 1) <= PairMerger::kMaxTextBytes);

using SpecialMatch = std::optional<SpecialTokenMatcher::Match>;

const PreTokenizerFamily& family_or_fail(const std::string& name) {
    if (const PreTokenizerFamily* family = find_pre_tokenizer_family(name)) return *family;
    if (name.empty()) {
        fail(ErrorCode::Unsupported,
             "the file names no pre-tokenizer (tokenizer.ggml.pre is missing); name one with "
             "--pre-tokenizer: {}",
             known_pre_tokenizer_names());
    }
    fail(ErrorCode::Unsupported,
         "unknown pre-tokenizer '{}' (tokenizer.ggml.pre); if one of these fits, name it with "
         "--pre-tokenizer: {}",
         name, known_pre_tokenizer_names());
}

bool overlaps(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end) {
    const auto next = std::partition_point(ranges.begin(), ranges.end(),
                                           [&](const ByteRange& range) { return range.end <= begin; });
    return next != ranges.end() && next->begin < end;
}

}  // namespace

Tokenizer::Tokenizer(VocabularyData data, const TokenizerOptions& options) : vocabulary_(std::move(data)) {
    const std::string& model = vocabulary_.data().model;
    if (model == "gpt2") {
        make_byte_level_bpe(options);
    } else if (model == "llama") {
        make_sentence_piece();
    } else {
        fail(ErrorCode::Unsupported, "tokenizer.ggml.model '{}' is not supported; gpt2 and llama are", model);
    }
    using Tokens = SpecialTokenMatcher::Tokens;
    user_defined_tokens_ = std::make_unique<SpecialTokenMatcher>(vocabulary_, Tokens::UserDefined);
    all_special_tokens_ = std::make_unique<SpecialTokenMatcher>(vocabulary_, Tokens::All);
    store_pieces();
}

Tokenizer::~Tokenizer() = default;

void Tokenizer::make_byte_level_bpe(const TokenizerOptions& options) {
    const std::string& name = options.pre_tokenizer.empty() ? vocabulary_.data().pre : options.pre_tokenizer;
    if (!options.pre_tokenizer.empty() && !find_pre_tokenizer_family(name)) {
        fail(ErrorCode::InvalidArgument, "--pre-tokenizer {}: unknown; known are {}", name,
             known_pre_tokenizer_names());
    }
    const PreTokenizerFamily& family = family_or_fail(name);
    encoder_ = std::make_unique<ByteLevelBpe>(vocabulary_, family);
    settle_ends(family.adds_bos);
}

void Tokenizer::make_sentence_piece() {
    auto encoder = std::make_unique<SentencePiece>(vocabulary_);
    has_space_prefix_ = encoder->adds_space_prefix();
    encoder_ = std::move(encoder);
    settle_ends(true);
}

void Tokenizer::settle_ends(bool default_bos) {
    const VocabularyData& data = vocabulary_.data();
    if (data.add_bos_token.value_or(false) && !bos()) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.add_bos_token is true, but there is no bos_token_id");
    }
    if (data.add_eos_token.value_or(false) && !eos()) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.add_eos_token is true, but there is no eos_token_id");
    }
    adds_bos_ = data.add_bos_token.value_or(default_bos) && bos();
    adds_eos_ = data.add_eos_token.value_or(false);
}

void Tokenizer::store_pieces() {
    pieces_.reserve(vocabulary_.size());
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
        pieces_.push_back(encoder_->bytes_of(static_cast<TokenId>(id)));
    }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
    if (text.size() > kMaxTextBytes) {
        fail(ErrorCode::InvalidArgument, "the text has {} bytes; {} can be tokenised at once", text.size(),
             kMaxTextBytes);
    }
    const auto special_at = [&](std::size_t position) -> SpecialMatch {
        if (options.special == SpecialTokens::Parse) {
            const SpecialMatch match = all_special_tokens_->match_at(text, position);
            if (!match || !overlaps(options.plain_ranges, position, position + match->bytes)) return match;
        }
        return user_defined_tokens_->match_at(text, position);
    };
    std::vector<TokenId> ids;
    std::size_t plain_begin = 0;
    std::size_t position = 0;
    while (position < text.size()) {
        const SpecialMatch match = special_at(position);
        if (!match) {
            ++position;
            continue;
        }
        encoder_->encode(text.substr(plain_begin, position - plain_begin), ids);
        ids.push_back(match->id);
        position += match->bytes;
        plain_begin = position;
    }
    encoder_->encode(text.substr(plain_begin), ids);
    if (options.ends == TextEnds::Mark) mark_ends(ids);
    return ids;
}

void Tokenizer::mark_ends(std::vector<TokenId>& ids) const {
    if (adds_bos_ && (ids.empty() || ids.front() != *bos())) ids.insert(ids.begin(), *bos());
    if (adds_eos_ && (ids.empty() || ids.back() != *eos())) ids.push_back(*eos());
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
    std::string bytes;
    for (const TokenId id : ids) bytes += piece(id, options.control);
    const bool drops = has_space_prefix_ && options.leading_space == LeadingSpace::Drop;
    if (drops && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
}

std::string_view Tokenizer::piece(TokenId id, ControlTokens control) const {
    check_id(id);
    if (control == ControlTokens::Hide && !vocabulary_.is_shown(id)) return {};
    return pieces_[static_cast<std::size_t>(id)];
}

bool Tokenizer::is_end_of_generation(TokenId id) const {
    check_id(id);
    return vocabulary_.is_end_of_generation(id);
}

void Tokenizer::check_id(TokenId id) const {
    if (vocabulary_.contains(id)) return;
    fail(ErrorCode::InvalidArgument, "token id {} is not in the vocabulary of {} tokens", id,
         vocabulary_.size());
}

}  // namespace coterie
