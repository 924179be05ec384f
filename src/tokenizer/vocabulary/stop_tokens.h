#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary/vocabulary_data.h"

namespace coterie {

class Vocabulary;

/// Texts of tokens that end a generation in some family of models, whatever the file's keys say.
std::span<const std::string_view> stop_texts();

/// The token that ends a turn, for files without `eot_token_id`: the first of the usual texts that the
/// vocabulary has.
std::optional<TokenId> guess_end_of_turn(const Vocabulary& vocabulary);

/// All ids after which a generation ends, ascending: those with a role (eos, eot, eom, fim padding,
/// repository and file separator) and those with one of `stop_texts`. Where a family ends whole answers with
/// other tokens, `<|end|>` only ends a message and is left out: with `<|return|>` and `<|call|>` (gpt-oss),
/// or `<|calls|>` and `<|flush|>`.
std::vector<TokenId> find_stop_tokens(const Vocabulary& vocabulary);

/// Control tokens whose text belongs to an answer: the structure of harmony messages in vocabularies that
/// have it, in others the marks of thoughts and calls.
std::span<const std::string_view> shown_control_texts(const Vocabulary& vocabulary);

}  // namespace coterie
