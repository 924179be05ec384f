#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "synth/metadata.h"
#include "tokenizer/models/byte_alphabet.h"
#include "tokenizer/vocabulary/vocabulary_data.h"

namespace coterie::synth {
namespace {

constexpr std::int64_t kBytes = 256;

/// Made-up words in ascending order of length: a word is the merge of a shorter word and a syllable.
class WordMaker {
  public:
    struct Word {
        std::string left;
        std::string right;
    };

    WordMaker() : space_(bytes_to_alphabet(" ")) {
        for (const char consonant : std::string_view("bdfghjklmnprtv")) {
            for (const char vowel : std::string_view("aeiou")) syllables_.push_back({consonant, vowel});
        }
        for (const std::string& syllable : syllables_) {
            words_.push_back({syllable.substr(0, 1), syllable.substr(1)});
        }
        for (const std::string& syllable : syllables_) words_.push_back({space_, syllable});
        next_parent_ = syllables_.size();  // words with a space in front grow, bare syllables do not
    }

    /// The next word; every word's parts are characters or earlier words.
    Word next() {
        if (given_ == words_.size()) grow();
        return words_[given_++];
    }

  private:
    void grow() {
        const Word parent = words_[next_parent_++];
        for (const std::string& syllable : syllables_) {
            words_.push_back({parent.left + parent.right, syllable});
        }
    }

    std::string space_;
    std::vector<std::string> syllables_;
    std::vector<Word> words_;
    std::size_t next_parent_ = 0;
    std::size_t given_ = 0;
};

constexpr std::string_view role_key(SpecialToken::Role role) {
    switch (role) {
        case SpecialToken::Role::Bos:
            return "tokenizer.ggml.bos_token_id";
        case SpecialToken::Role::Eos:
            return "tokenizer.ggml.eos_token_id";
        case SpecialToken::Role::Eot:
            return "tokenizer.ggml.eot_token_id";
        case SpecialToken::Role::None:
            break;
    }
    return {};
}

std::int32_t number_of(TokenType type) { return static_cast<std::int32_t>(type); }

}  // namespace

void set_vocabulary_keys(gguf::Header& header, const Shape& shape) {
    std::map<std::int64_t, std::string_view> special;
    for (const SpecialToken& token : shape.special_tokens) special[token.id] = token.text;

    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    std::vector<std::string> merges;
    WordMaker words;
    for (std::int64_t id = 0; id < shape.vocabulary; ++id) {
        const auto found = special.find(id);
        types.push_back(number_of(found != special.end() ? TokenType::Control : TokenType::Normal));
        if (found != special.end()) {
            COTERIE_CHECK(id >= kBytes);
            tokens.emplace_back(found->second);
        } else if (id < kBytes) {
            tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(id))));
        } else {
            const WordMaker::Word word = words.next();
            tokens.push_back(word.left + word.right);
            merges.push_back(word.left + " " + word.right);
        }
    }
    header.set("tokenizer.ggml.model", std::string_view("gpt2"));
    header.set("tokenizer.ggml.pre", shape.pre_tokenizer);
    header.set_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    header.set_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    header.set_array("tokenizer.ggml.merges", std::span<const std::string>(merges));
    for (const SpecialToken& token : shape.special_tokens) {
        if (token.role == SpecialToken::Role::None) continue;
        header.set(role_key(token.role), static_cast<std::uint32_t>(token.id));
    }
    header.set("tokenizer.ggml.add_bos_token", false);
}

}  // namespace coterie::synth
