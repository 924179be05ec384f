#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coterie {

using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

/// The numbers that GGUF files use in `tokenizer.ggml.token_type`.
enum class TokenType : std::int32_t {
    Normal = 1,
    Unknown = 2,      ///< stands for text that the vocabulary cannot write
    Control = 3,      ///< steers the model; never made from plain text
    UserDefined = 4,  ///< one token wherever its text stands
    Unused = 5,       ///< fills up the table; neither read nor written
    Byte = 6,         ///< one raw byte, text `<0xXX>` (SentencePiece-like vocabularies)
};

/// Tokens with a role. Any may be missing.
struct SpecialTokenIds {
    std::optional<TokenId> bos;  ///< begins a text
    std::optional<TokenId> eos;  ///< ends a text
    std::optional<TokenId> eot;  ///< ends a turn of a chat
    std::optional<TokenId> eom;  ///< ends a message within a turn
    std::optional<TokenId> unknown;
    std::optional<TokenId> separator;
    std::optional<TokenId> padding;
    std::optional<TokenId> fim_prefix;  ///< the fill-in-the-middle family
    std::optional<TokenId> fim_suffix;
    std::optional<TokenId> fim_middle;
    std::optional<TokenId> fim_padding;
    std::optional<TokenId> fim_repository;
    std::optional<TokenId> fim_file_separator;
};

/// What a model file says about its vocabulary, unchecked. Fields bear the names of the `tokenizer.ggml.*`
/// keys.
struct VocabularyData {
    std::string model;                      ///< `gpt2` or `llama`
    std::string pre;                        ///< the pre-tokenizer's name; empty where the file has none
    std::vector<std::string> tokens;        ///< by id
    std::vector<std::int32_t> token_types;  ///< by id; empty: all normal
    std::vector<float> scores;              ///< by id; `llama` only, bigger merges first
    std::vector<std::string> merges;        ///< by rank, `left right`; `gpt2` only
    SpecialTokenIds special;
    std::optional<bool> add_bos_token;
    std::optional<bool> add_eos_token;
    std::optional<bool> add_space_prefix;
};

}  // namespace coterie
