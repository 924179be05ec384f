#pragma once

#include <fmt/format.h>
#include <initializer_list>
#include <string>
#include <utility>

#include "tokenizer/models/byte_alphabet.h"
#include "tokenizer/vocabulary/vocabulary_data.h"

/// Vocabularies small enough to work out by hand what comes out, for tests and the fuzzer.
namespace coterie::small_vocabularies {

inline TokenId add(VocabularyData& data, std::string text, TokenType type, float score = 0) {
    data.tokens.push_back(std::move(text));
    data.token_types.push_back(static_cast<std::int32_t>(type));
    if (data.model == "llama") data.scores.push_back(score);
    return static_cast<TokenId>(data.tokens.size() - 1);
}

/// Adds a merge and its result as the next token.
inline TokenId add_merge(VocabularyData& data, std::string_view left, std::string_view right) {
    const std::string left_text = bytes_to_alphabet(left);
    const std::string right_text = bytes_to_alphabet(right);
    data.merges.push_back(left_text + " " + right_text);
    return add(data, left_text + right_text, TokenType::Normal);
}

/// `gpt2`: ids 0 to 255 are the bytes, 256 "he", 257 "ll", 258 "hell", 259 "hello", 260 " w", 261 "aa", 262
/// "aaaa", 263 `<|im_start|>`, 264 `<|im_end|>` (eos), 265 `<|endoftext|>` (bos), 266 `<think>`
/// (user-defined), 267 `<think>!` (user-defined).
inline VocabularyData bpe() {
    VocabularyData data;
    data.model = "gpt2";
    data.pre = "qwen2";
    for (int byte = 0; byte < 256; ++byte) {
        add(data, bytes_to_alphabet(std::string(1, static_cast<char>(byte))), TokenType::Normal);
    }
    add_merge(data, "h", "e");
    add_merge(data, "l", "l");
    add_merge(data, "he", "ll");
    add_merge(data, "hell", "o");
    add_merge(data, " ", "w");
    add_merge(data, "a", "a");
    add_merge(data, "aa", "aa");
    add(data, "<|im_start|>", TokenType::Control);
    data.special.eos = add(data, "<|im_end|>", TokenType::Control);
    data.special.bos = add(data, "<|endoftext|>", TokenType::Control);
    add(data, "<think>", TokenType::UserDefined);
    add(data, "<think>!", TokenType::UserDefined);
    return data;
}

/// `llama`: 0 `<unk>`, 1 `<s>`, 2 `</s>`, 3 to 258 the bytes; then from 259 on the space U+2581, h, e, l, o,
/// w (264) with bad scores; 265 "he" -3, 266 "el" -1, 267 "lo" -2, 268 "▁w" -4, 269 "hel" -5, 270 "aa" -1,
/// 271 "a" -9.
inline VocabularyData sentence_piece() {
    VocabularyData data;
    data.model = "llama";
    add(data, "<unk>", TokenType::Unknown);
    add(data, "<s>", TokenType::Control);
    add(data, "</s>", TokenType::Control);
    for (int byte = 0; byte < 256; ++byte) add(data, fmt::format("<0x{:02X}>", byte), TokenType::Byte);
    for (const char* piece : {"\u2581", "h", "e", "l", "o", "w"}) add(data, piece, TokenType::Normal, -100);
    add(data, "he", TokenType::Normal, -3);
    add(data, "el", TokenType::Normal, -1);
    add(data, "lo", TokenType::Normal, -2);
    add(data, "\u2581w", TokenType::Normal, -4);
    add(data, "hel", TokenType::Normal, -5);
    add(data, "aa", TokenType::Normal, -1);
    add(data, "a", TokenType::Normal, -9);
    return data;
}

}  // namespace coterie::small_vocabularies
