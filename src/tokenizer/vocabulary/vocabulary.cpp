#include "tokenizer/vocabulary/vocabulary.h"

#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/vocabulary/stop_tokens.h"

namespace coterie {
namespace {

struct NamedId {
    const char* key;
    std::optional<TokenId> SpecialTokenIds::*id;
};

constexpr std::array kNamedIds = {
    NamedId{"bos_token_id", &SpecialTokenIds::bos},
    NamedId{"eos_token_id", &SpecialTokenIds::eos},
    NamedId{"eot_token_id", &SpecialTokenIds::eot},
    NamedId{"eom_token_id", &SpecialTokenIds::eom},
    NamedId{"unknown_token_id", &SpecialTokenIds::unknown},
    NamedId{"seperator_token_id", &SpecialTokenIds::separator},  // spelt so in the files
    NamedId{"padding_token_id", &SpecialTokenIds::padding},
    NamedId{"fim_pre_token_id", &SpecialTokenIds::fim_prefix},
    NamedId{"fim_suf_token_id", &SpecialTokenIds::fim_suffix},
    NamedId{"fim_mid_token_id", &SpecialTokenIds::fim_middle},
    NamedId{"fim_pad_token_id", &SpecialTokenIds::fim_padding},
    NamedId{"fim_rep_token_id", &SpecialTokenIds::fim_repository},
    NamedId{"fim_sep_token_id", &SpecialTokenIds::fim_file_separator},
};

TokenType checked_type(std::int32_t number, std::size_t id) {
    if (number == 0) return TokenType::Normal;  // "undefined": what early converters wrote
    if (number < 1 || number > 6) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.token_type: token {} has type {}; 1 to 6 exist", id,
             number);
    }
    return static_cast<TokenType>(number);
}

}  // namespace

Vocabulary::Vocabulary(VocabularyData data) : data_(std::move(data)) {
    check_sizes();
    read_types();
    index_texts();
    apply_default_ids();
    check_ids();
    settle_stop_tokens();
    settle_shown_tokens();
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
    const auto found = ids_by_text_.find(text);
    if (found == ids_by_text_.end()) return std::nullopt;
    return found->second;
}

void Vocabulary::check_sizes() const {
    const std::size_t count = data_.tokens.size();
    if (count == 0) fail(ErrorCode::InvalidFile, "tokenizer.ggml.tokens is missing or empty");
    if (count > std::numeric_limits<TokenId>::max()) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.tokens has {} entries, more than ids can number", count);
    }
    if (!data_.token_types.empty() && data_.token_types.size() != count) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.token_type has {} entries for {} tokens",
             data_.token_types.size(), count);
    }
    if (!data_.scores.empty() && data_.scores.size() != count) {
        fail(ErrorCode::InvalidFile, "tokenizer.ggml.scores has {} entries for {} tokens",
             data_.scores.size(), count);
    }
}

void Vocabulary::read_types() {
    types_.assign(size(), TokenType::Normal);
    for (std::size_t id = 0; id < data_.token_types.size(); ++id)
        types_[id] = checked_type(data_.token_types[id], id);
}

void Vocabulary::index_texts() {
    ids_by_text_.reserve(size());
    for (std::size_t id = 0; id < size(); ++id) {
        if (!data_.tokens[id].empty()) ids_by_text_.emplace(data_.tokens[id], static_cast<TokenId>(id));
    }
}

void Vocabulary::apply_default_ids() {
    // The historic default of `gpt2` files, 11 for both, names a comma in the vocabularies of today: left
    // out.
    if (data_.model != "llama") return;
    const auto use_default = [&](std::optional<TokenId>& role, TokenId id) {
        if (!role && contains(id)) role = id;
    };
    use_default(data_.special.bos, 1);
    use_default(data_.special.eos, 2);
    use_default(data_.special.unknown, 0);
}

void Vocabulary::check_ids() {
    for (const NamedId& named : kNamedIds) {
        std::optional<TokenId>& id = data_.special.*named.id;
        if (id == -1) id.reset();  // some converters write "none" so
        if (id && !contains(*id)) {
            fail(ErrorCode::InvalidFile, "tokenizer.ggml.{} is {}; the vocabulary has {} tokens", named.key,
                 *id, size());
        }
    }
}

void Vocabulary::settle_stop_tokens() {
    for (const std::string_view text : stop_texts()) {
        if (const auto id = find(text)) types_[static_cast<std::size_t>(*id)] = TokenType::Control;
    }
    if (!data_.special.eot) data_.special.eot = guess_end_of_turn(*this);
    end_of_generation_ = find_stop_tokens(*this);
    ends_generation_.assign(size(), false);
    for (const TokenId id : end_of_generation_) ends_generation_[static_cast<std::size_t>(id)] = true;
}

void Vocabulary::settle_shown_tokens() {
    shown_.resize(size());
    for (std::size_t id = 0; id < size(); ++id) {
        const TokenType type = types_[id];
        shown_[id] = type == TokenType::Normal || type == TokenType::UserDefined || type == TokenType::Byte;
    }
    for (const std::string_view text : shown_control_texts(*this)) {
        if (const auto id = find(text)) shown_[static_cast<std::size_t>(*id)] = true;
    }
}

}  // namespace coterie
