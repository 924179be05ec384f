#include "tokenizer/pre_tokenizer/patterns.h"

#include <array>

// The families' regular expressions, in PCRE2's syntax, as their tokenizers define them. Within all of them
// `\s` means Unicode's White_Space (see pattern.h). Where an equivalent form was chosen, because the original
// one needs time quadratic in the text, a comment says so. The original o200k classes are used, not
// look-ahead imitations of them.

namespace coterie {
namespace {

using namespace std::string_view_literals;

// Parts that many patterns share.
#define CONTRACTION R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define WHITESPACE R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
// Words that change from upper to lower case at most once.
#define LOWER_ENDING_WORD R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+"
#define UPPER_STARTING_WORD R"([^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER "*"
#define PUNCTUATION R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define PUNCTUATION_OR_PATH R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"

#define QWEN2 CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)" PUNCTUATION "|" WHITESPACE
#define LLAMA3 CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)" PUNCTUATION "|" WHITESPACE
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"

constexpr std::array kQwen2Patterns = {QWEN2 ""sv};

constexpr std::array kQwen35Patterns = {
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" WHITESPACE ""sv,
};

constexpr std::array kLlama3Patterns = {LLAMA3 ""sv};

constexpr std::array kGpt2Patterns = {GPT2 ""sv};

constexpr std::array kStarcoderPatterns = {R"(\p{N})"sv, GPT2 ""sv};

// Letters of the scripts that have case, without modifiers and marks.
#define DEEPSEEK_LETTERS                                                                                 \
    R"(\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"         \
    R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"        \
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"              \
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"             \
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"           \
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"    \
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"   \
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102})"   \
    R"(\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"     \
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"             \
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"            \
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"           \
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"         \
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})" \
    R"(\x{1E900}-\x{1E943})"

constexpr std::array kDeepseekLlmPatterns = {
    R"([\r\n])"sv,
    R"(\s?[)" DEEPSEEK_LETTERS "]+"sv,
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)"sv,
    // `\s+$`, which tries every start within every run of white space.
    R"((?<!\s)\s++$)"sv,
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"sv,
    R"(\p{N}+)"sv,
};

constexpr std::array kDeepseekCoderPatterns = {
    R"([\r\n])"sv,    R"(\s?\p{L}+)"sv,
    R"(\s?\p{P}+)"sv, R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"sv,
    R"(\p{N})"sv,
};

constexpr std::array kDeepseekV3Patterns = {
    R"(\p{N}{1,3})"sv,
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"sv,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" WHITESPACE ""sv,
};

constexpr std::array kO200kPatterns = {
    LOWER_ENDING_WORD CONTRACTION "?|" UPPER_STARTING_WORD CONTRACTION R"(?|\p{N}{1,3}|)" PUNCTUATION_OR_PATH
                                  "|" WHITESPACE ""sv,
};

constexpr std::array kTekkenPatterns = {
    LOWER_ENDING_WORD "|" UPPER_STARTING_WORD R"(|\p{N}|)" PUNCTUATION_OR_PATH "|" WHITESPACE ""sv,
};

constexpr std::array kDefaultPatterns = {
    R"([\p{P}\$\+<=>\^~\|]+)"sv,
    GPT2 ""sv,
    R"(\p{N}+)"sv,
    R"([0-9][0-9][0-9])"sv,
};

constexpr std::array kQwen2Names = {"qwen2"sv, "deepseek-r1-qwen"sv, "kormo"sv, "f2llmv2"sv};
constexpr std::array kQwen35Names = {"qwen35"sv};
constexpr std::array kLlama3Names = {"llama-bpe"sv, "llama3"sv, "llama-v3"sv, "falcon3"sv, "pixtral"sv};
constexpr std::array kDbrxNames = {"dbrx"sv, "smaug-bpe"sv};
constexpr std::array kGlm4Names = {"glm4"sv, "chatglm-bpe"sv, "glm5"sv};
constexpr std::array kGpt2Names = {"gpt-2"sv, "olmo"sv, "mpt"sv, "jais"sv, "phi-2"sv};
constexpr std::array kStarcoderNames = {"starcoder"sv, "refact"sv,    "command-r"sv,
                                        "smollm"sv,    "codeshell"sv, "exaone"sv};
constexpr std::array kDeepseekLlmNames = {"deepseek-llm"sv};
constexpr std::array kDeepseekCoderNames = {"deepseek-coder"sv};
constexpr std::array kDeepseekV3Names = {"deepseek-v3"sv, "joyai-llm"sv, "hunyuan-dense"sv};
constexpr std::array kO200kNames = {"gpt-4o"sv, "minimax-m2"sv, "llama4"sv};
constexpr std::array kTekkenNames = {"tekken"sv};
constexpr std::array kDefaultNames = {"default"sv};

constexpr std::array kFamilies = {
    PreTokenizerFamily{.names = kQwen2Names, .patterns = kQwen2Patterns},
    PreTokenizerFamily{.names = kQwen35Names, .patterns = kQwen35Patterns},
    PreTokenizerFamily{
        .names = kLlama3Names, .patterns = kLlama3Patterns, .ignores_merges = true, .adds_bos = true},
    PreTokenizerFamily{.names = kDbrxNames, .patterns = kLlama3Patterns},
    PreTokenizerFamily{.names = kGlm4Names, .patterns = kLlama3Patterns},
    PreTokenizerFamily{.names = kGpt2Names, .patterns = kGpt2Patterns},
    PreTokenizerFamily{.names = kStarcoderNames, .patterns = kStarcoderPatterns},
    PreTokenizerFamily{.names = kDeepseekLlmNames, .patterns = kDeepseekLlmPatterns},
    PreTokenizerFamily{.names = kDeepseekCoderNames, .patterns = kDeepseekCoderPatterns},
    PreTokenizerFamily{.names = kDeepseekV3Names, .patterns = kDeepseekV3Patterns},
    PreTokenizerFamily{.names = kO200kNames, .patterns = kO200kPatterns},
    PreTokenizerFamily{
        .names = kTekkenNames, .patterns = kTekkenPatterns, .ignores_merges = true, .adds_bos = true},
    PreTokenizerFamily{.names = kDefaultNames, .patterns = kDefaultPatterns},
};

}  // namespace

std::span<const PreTokenizerFamily> pre_tokenizer_families() { return kFamilies; }

const PreTokenizerFamily* find_pre_tokenizer_family(std::string_view name) {
    for (const PreTokenizerFamily& family : kFamilies) {
        for (const std::string_view known : family.names) {
            if (known == name) return &family;
        }
    }
    return nullptr;
}

std::string known_pre_tokenizer_names() {
    std::string all;
    for (const PreTokenizerFamily& family : kFamilies) {
        for (const std::string_view name : family.names) {
            if (!all.empty()) all += ", ";
            all += name;
        }
    }
    return all;
}

}  // namespace coterie
