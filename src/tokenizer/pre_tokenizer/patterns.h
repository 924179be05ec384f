#pragma once

#include <span>
#include <string>
#include <string_view>

namespace coterie {

/// How a family of `gpt2` vocabularies cuts text into fragments before merging, and what it takes for
/// granted.
struct PreTokenizerFamily {
    std::span<const std::string_view>
        names;  ///< values of `tokenizer.ggml.pre`; the first one is the family's
    std::span<const std::string_view> patterns;
    bool ignores_merges = false;  ///< a fragment that is a token as a whole is taken as it is
    bool adds_bos = false;        ///< where the file has no `add_bos_token`
};

/// All families, in the order of `patterns.cpp`.
std::span<const PreTokenizerFamily> pre_tokenizer_families();

/// The family with this name, or null.
const PreTokenizerFamily* find_pre_tokenizer_family(std::string_view name);

/// All names, for messages: `qwen2, deepseek-r1-qwen, ...`.
std::string known_pre_tokenizer_names();

}  // namespace coterie
