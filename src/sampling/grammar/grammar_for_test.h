#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/grammar/grammar_vocabulary.h"

/// Small vocabularies for tests of grammars.
namespace coterie::grammar_test {

/// All bytes as tokens 0 to 255, then the texts, then one end token.
inline std::shared_ptr<const GrammarVocabulary> vocabulary_of(const std::vector<std::string>& texts) {
    static const std::string bytes = [] {
        std::string all;
        for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
        return all;
    }();
    using Kind = GrammarToken::Kind;
    std::vector<GrammarToken> tokens;
    for (std::size_t i = 0; i < 256; ++i)
        tokens.push_back({Kind::Text, std::string_view(bytes).substr(i, 1)});
    for (const std::string& text : texts) tokens.push_back({Kind::Text, text});
    tokens.push_back({Kind::End, {}});
    return std::make_shared<const GrammarVocabulary>(tokens);
}

inline bool is_set(std::span<const std::uint64_t> mask, std::int32_t token) {
    return (mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1) != 0;
}

}  // namespace coterie::grammar_test
