#include "tokenizer/pre_tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <set>
#include <string>
#include <time.h>

#include "tokenizer/pre_tokenizer/patterns.h"

namespace coterie {
namespace {

using testing::ElementsAre;
using Fragments = std::vector<std::string>;

Fragments split(std::string_view family_name, std::string_view text) {
    const PreTokenizerFamily* family = find_pre_tokenizer_family(family_name);
    if (family == nullptr) throw std::runtime_error("no such family");
    Fragments fragments;
    PreTokenizer(*family).split(text, [&](std::string_view part) { fragments.emplace_back(part); });
    return fragments;
}

struct Case {
    std::string_view text;
    Fragments fragments;
};

void expect_splits(std::string_view family, const std::vector<Case>& cases) {
    for (const Case& c : cases) EXPECT_EQ(split(family, c.text), c.fragments) << family << ": " << c.text;
}

// The texts of the public Llama-3 vectors; each expected fragment holds a whole number of that vector's
// tokens.
TEST(PreTokenizer, Llama3) {
    const std::vector<Case> cases = {
        {" ", {" "}},
        {"   ", {"   "}},
        {"\t", {"\t"}},
        {"\n\n\n", {"\n\n\n"}},
        {"\t\n", {"\t\n"}},
        {"Hello world", {"Hello", " world"}},
        {" Hello World!", {" Hello", " World", "!"}},
        {" this is 🦙.cpp", {" this", " is", " 🦙.", "cpp"}},
        {"w048 7tuijk dsdfhu", {"w", "048", " ", "7", "tuijk", " dsdfhu"}},
        {"    Hello\n    Hello", {"   ", " Hello", "\n", "   ", " Hello"}},
        {"\n =", {"\n", " ="}},
        {"' era", {"'", " era"}},
        {"3333", {"333", "3"}},
        {"333333", {"333", "333"}},
        {"ied 4 ½ months", {"ied", " ", "4", " ", "½", " months"}},
        {"Führer", {"Führer"}},
        {" Việt", {" Việt"}},
        {"DON'T we'll I'M", {"DON", "'T", " we", "'ll", " I", "'M"}},
        {"a \n b\r\n\r\n  c", {"a", " \n", " b", "\r\n\r\n", " ", " c"}},
        {"x+=1;\n\n", {"x", "+=", "1", ";\n\n"}},
        {"tail  ", {"tail", "  "}},
        {"\tif(x)", {"\tif", "(x", ")"}},
    };
    expect_splits("llama-bpe", cases);
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOneAndGlm4UpToThree) {
    expect_splits("qwen2",
                  {
                      {"123", {"1", "2", "3"}},
                      {"don't stop 12 times", {"don", "'t", " stop", " ", "1", "2", " times"}},
                      {"user\nWhat is a volcano?", {"user", "\n", "What", " is", " a", " volcano", "?"}},
                      {"e\xCC\x81t",
                       {"e", "\xCC\x81t"}},  // a combining mark is no letter here, but may stand before one
                  });
    expect_splits("glm4", {{"123", {"123"}}, {"1234", {"123", "4"}}});
    expect_splits("dbrx", {{"1234", {"123", "4"}}});
}

TEST(PreTokenizer, Qwen35KeepsMarksWithinWords) {
    const std::vector<Case> cases = {
        {"e\xCC\x81t", {"e\xCC\x81t"}},
        {"नमस्ते 12", {"नमस्ते", " ", "1", "2"}},
        {"a!\n\nb", {"a", "!\n\n", "b"}},
    };
    expect_splits("qwen35", cases);
}

TEST(PreTokenizer, Gpt2) {
    const std::vector<Case> cases = {
        {"Hello world's 123 end", {"Hello", " world", "'s", " 123", " end"}},
        {"I'M", {"I", "'", "M"}},  // contractions in lower case only
        {"a   b", {"a", "  ", " b"}},
        {"a\n\nb", {"a", "\n", "\n", "b"}},
        {"a\tb", {"a", "\t", "b"}},  // left over by every alternative: a gap
        {"x \n", {"x", " \n"}},
        {" !? ok", {" !?", " ok"}},
    };
    for (const char* name : {"gpt-2", "olmo", "mpt", "jais", "phi-2"}) expect_splits(name, cases);
}

TEST(PreTokenizer, StarcoderCutsDigitsFirst) {
    const std::vector<Case> cases = {
        {"a 123b", {"a", " ", "1", "2", "3", "b"}},
        {"it's  5", {"it", "'s", "  ", "5"}},
    };
    expect_splits("starcoder", cases);
}

// The texts of the public DeepSeek vectors.
TEST(PreTokenizer, DeepseekLlm) {
    const std::vector<Case> cases = {
        {"   ", {"   "}},
        {"\n\n\n", {"\n", "\n", "\n"}},
        {"\t\n", {"\t", "\n"}},
        {"Hello world", {"Hello", " world"}},
        {" Hello World!", {" Hello", " World", "!"}},
        {" this is 🦙.cpp", {" this", " is", " 🦙", ".", "cpp"}},
        {"w048 7tuijk dsdfhu", {"w", "048", " ", "7", "tuijk", " dsdfhu"}},
        {"    Hello\n    Hello", {"   ", " Hello", "\n", "   ", " Hello"}},
        {"\n =", {"\n", " ="}},
        {"' era", {"'", " era"}},
        {"333333", {"333333"}},
        {"1  ", {"1", "  "}},
        {"漢字かな한글abc", {"漢字かな한글", "abc"}},
        {"“ok”、 ～", {"“", "ok", "”、", " ～"}},
        // The punctuation class holds the ASCII letters, and cuts the words of
        // the letter pattern once more.
        {"Füh ½", {"F", "ü", "h", " ", "½"}},
    };
    expect_splits("deepseek-llm", cases);
}

TEST(PreTokenizer, DeepseekCoder) {
    const std::vector<Case> cases = {
        {"int x = 12;\n", {"int", " x", " = ", "1", "2", ";", "\n"}},
        {"a\t(b)", {"a", "\t(", "b", ")"}},
        {"漢字", {"漢字"}},
    };
    expect_splits("deepseek-coder", cases);
}

TEST(PreTokenizer, DeepseekV3) {
    const std::vector<Case> cases = {
        {"rfid501.go", {"rfid", "501", ".go"}},
        {"12345", {"123", "45"}},
        {"漢字かなABC", {"漢字かな", "ABC"}},
        {"e\xCC\x81t it's", {"e\xCC\x81t", " it", "'s"}},
        {"a == b;\n\n  c", {"a", " ==", " b", ";\n\n", " ", " c"}},
        {"x\n \n", {"x", "\n \n"}},
    };
    for (const char* name : {"deepseek-v3", "joyai-llm"}) expect_splits(name, cases);
}

TEST(PreTokenizer, O200kFollowsTheCaseOfWords) {
    const std::vector<Case> cases = {
        {"HelloWorld", {"Hello", "World"}},
        {"HTTPServer ABC", {"HTTPServer", " ABC"}},
        {"don't DON'T", {"don't", " DON'T"}},
        {"12345", {"123", "45"}},
        {"a://b/c", {"a", "://", "b", "/c"}},
        {"x !\n/\n y", {"x", " !\n/\n", " y"}},
        {"漢字ABCd", {"漢字ABCd"}},
        {"abcΔδΔ", {"abc", "Δδ", "Δ"}},  // upper and lower case of all scripts, not of a to z only
        {"e\xCC\x81", {"e\xCC\x81"}},
    };
    for (const char* name : {"gpt-4o", "minimax-m2"}) expect_splits(name, cases);
}

TEST(PreTokenizer, TekkenHasNoContractionsAndSingleDigits) {
    const std::vector<Case> cases = {
        {"don't", {"don", "'t"}},
        {"HelloWorld 12", {"Hello", "World", " ", "1", "2"}},
        {"a;/\n", {"a", ";/\n"}},
    };
    expect_splits("tekken", cases);
}

TEST(PreTokenizer, Default) {
    expect_splits("default",
                  {
                      {"Hello, world", {"Hello", ",", " world"}},
                      {"a 12345", {"a", " ", "123", "45"}},
                      {"x<=y", {"x", "<=", "y"}},
                      {"it's", {"it", "'", "s"}},  // punctuation is cut before contractions are looked for
                  });
}

// The next-line control U+0085 is White_Space, the Mongolian vowel separator U+180E is not.
TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
    {
        const std::vector<Case> cases = {
            {"a \xC2\x85", {"a", " \xC2\x85"}},
            {"a \xE1\xA0\x8E", {"a", " \xE1\xA0\x8E"}},
        };
        expect_splits("gpt-2", cases);
    }
    EXPECT_THAT(split("gpt-2", "!\xE1\xA0\x8E!"), ElementsAre("!\xE1\xA0\x8E!"));
    EXPECT_THAT(split("gpt-2", "!\xC2\x85!"), ElementsAre("!", "\xC2\x85", "!"));
}

TEST(PreTokenizer, BytesThatAreNotUtf8AreFragmentsOfTheirOwn) {
    EXPECT_THAT(split("qwen2", "ab\xFF\xFE cd\xE2\x82"), ElementsAre("ab", "\xFF\xFE", " cd", "\xE2\x82"));
    EXPECT_THAT(split("qwen2", "\xED\xA0\x80"), ElementsAre("\xED\xA0\x80"));  // a surrogate
}

TEST(PreTokenizer, NamesAreUnique) {
    std::set<std::string_view> names;
    for (const PreTokenizerFamily& family : pre_tokenizer_families()) {
        for (const std::string_view name : family.names) EXPECT_TRUE(names.insert(name).second) << name;
    }
    EXPECT_EQ(find_pre_tokenizer_family("nonsense"), nullptr);
    EXPECT_THAT(known_pre_tokenizer_names(), testing::HasSubstr("chatglm-bpe"));
}

/// `unit` over and over until the text has `bytes` bytes.
std::string repeated(std::string_view unit, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    return text;
}

/// Processor time of this thread, so that other programs on the machine do not count.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_to_split(const PreTokenizer& pre_tokenizer, const std::string& text) {
    const double start = cpu_seconds();
    std::size_t bytes = 0;
    pre_tokenizer.split(text, [&](std::string_view part) { bytes += part.size(); });
    EXPECT_EQ(bytes, text.size());
    return cpu_seconds() - start;
}

// Eight times the text may take 8 times as long, and 24 times on a busy machine; quadratic time would take 64
// times.
TEST(PreTokenizer, TimeIsLinearInTheText) {
    constexpr std::size_t kSmall = 1 << 15;
    for (const PreTokenizerFamily& family : pre_tokenizer_families()) {
        const PreTokenizer pre_tokenizer(family);
        for (const std::string_view unit : {"a", "A", " ", "\n", "7", "!", "'", "\t", " \n", "\xCC\x81", "漢",
                                            "aB", "Don't go 12 times!\n"}) {
            for (const std::string_view tail : {"", "1"}) {
                const double small =
                    seconds_to_split(pre_tokenizer, repeated(unit, kSmall) + std::string(tail));
                const double large =
                    seconds_to_split(pre_tokenizer, repeated(unit, 8 * kSmall) + std::string(tail));
                EXPECT_LT(large, 24 * small + 0.002)
                    << family.names[0] << ", of '" << unit << "', then '" << tail << "'";
            }
        }
    }
}

}  // namespace
}  // namespace coterie
