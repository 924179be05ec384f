#include "tokenizer/tokenizer.h"

#include <functional>
#include <gmock/gmock.h>
#include <random>
#include <thread>
#include <time.h>

#include "base/error.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncodeOptions kParse = {.special = SpecialTokens::Parse};
constexpr EncodeOptions kMarked = {.special = SpecialTokens::Parse, .ends = TextEnds::Mark};

VocabularyData sentence_piece(std::optional<bool> add_space_prefix) {
    VocabularyData data = small_vocabularies::sentence_piece();
    data.add_space_prefix = add_space_prefix;
    return data;
}

std::string refusal(VocabularyData data, ErrorCode code) {
    try {
        Tokenizer tokenizer(std::move(data));
    } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code));
        return error.what();
    }
    return "no error";
}

TEST(Tokenizer, ControlTokensAreParsedOnlyWhereAskedFor) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    EXPECT_THAT(tokenizer.encode("<|im_start|>hello<|im_end|>", kParse), ElementsAre(263, 259, 264));
    for (const TokenId id : tokenizer.encode("<|im_start|>hello<|im_end|>")) EXPECT_LT(id, 263);
}

TEST(Tokenizer, UserDefinedTokensAlwaysMatch) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    EXPECT_THAT(tokenizer.encode("<think>hello<think>!"), ElementsAre(266, 259, 267));
    EXPECT_THAT(tokenizer.encode("<think>hello<think>!", kParse), ElementsAre(266, 259, 267));
}

// With parsing off no text may give an id of type control, not even the control tokens' own.
TEST(Tokenizer, PlainTextCannotForgeControlTokens) {
    for (const VocabularyData& data : {small_vocabularies::bpe(), small_vocabularies::sentence_piece()}) {
        const Tokenizer tokenizer(data);
        std::string all_texts;
        for (const std::string& text : data.tokens) all_texts += text + text + " ";
        for (const TokenId id : tokenizer.encode(all_texts)) {
            EXPECT_NE(tokenizer.vocabulary().type(id), TokenType::Control) << id;
        }
    }
}

TEST(Tokenizer, MarkersWithinAPlainRangeAreText) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    const std::string text = "<|im_start|>a<|im_end|>b<think><|im_end|>";
    const std::vector<ByteRange> message = {{12, 31}};  // a<|im_end|>b<think>
    const auto ids = tokenizer.encode(text, {.special = SpecialTokens::Parse, .plain_ranges = message});
    EXPECT_EQ(ids.front(), 263);
    EXPECT_EQ(ids.back(), 264);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 264), 1);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 266), 1);
    EXPECT_EQ(tokenizer.decode(ids, {.control = ControlTokens::Show}), text);

    const std::vector<ByteRange> half_a_marker = {{0, 5}};
    for (const TokenId id :
         tokenizer.encode("<|im_end|>", {.special = SpecialTokens::Parse, .plain_ranges = half_a_marker})) {
        EXPECT_NE(id, 264);
    }
    const std::vector<ByteRange> beside_it = {{0, 1}, {11, 12}};
    EXPECT_THAT(
        tokenizer.encode("a<|im_end|>a", {.special = SpecialTokens::Parse, .plain_ranges = beside_it}),
        ElementsAre('a', 264, 'a'));
}

TEST(Tokenizer, BosAsTheFamilySaysUnlessTheFileDoes) {
    VocabularyData data = small_vocabularies::bpe();
    EXPECT_FALSE(Tokenizer(data).adds_bos());
    data.pre = "llama-bpe";
    EXPECT_TRUE(Tokenizer(data).adds_bos());
    data.pre = "glm4";
    EXPECT_FALSE(Tokenizer(data).adds_bos());
    data.add_bos_token = true;
    EXPECT_THAT(Tokenizer(data).encode("hello", kMarked), ElementsAre(265, 259));
    EXPECT_THAT(Tokenizer(data).encode("hello", kParse), ElementsAre(259));
    data.pre = "llama-bpe";
    data.add_bos_token = false;
    EXPECT_THAT(Tokenizer(data).encode("hello", kMarked), ElementsAre(259));
    EXPECT_TRUE(Tokenizer(small_vocabularies::sentence_piece()).adds_bos());
}

TEST(Tokenizer, ATextNeverGetsTwoOfAnEnd) {
    VocabularyData data = small_vocabularies::bpe();
    data.add_bos_token = true;
    data.add_eos_token = true;
    const Tokenizer tokenizer(data);
    EXPECT_THAT(tokenizer.encode("<|endoftext|>hello<|im_end|>", kMarked), ElementsAre(265, 259, 264));
    EXPECT_THAT(tokenizer.encode("hello", kMarked), ElementsAre(265, 259, 264));
    EXPECT_THAT(tokenizer.encode("", kMarked), ElementsAre(265, 264));
}

TEST(Tokenizer, RefusesEndsWithoutTheirTokens) {
    VocabularyData data = small_vocabularies::bpe();
    data.special.bos.reset();
    data.add_bos_token = true;
    EXPECT_THAT(refusal(data, ErrorCode::InvalidFile), HasSubstr("add_bos_token"));
    data.add_bos_token.reset();
    data.pre = "llama-bpe";  // adds one by default, if there is one
    EXPECT_FALSE(Tokenizer(data).adds_bos());
}

TEST(Tokenizer, AnUnknownPreTokenizerIsRefusedUnlessReplaced) {
    VocabularyData data = small_vocabularies::bpe();
    data.pre = "nonsense";
    const std::string message = refusal(data, ErrorCode::Unsupported);
    EXPECT_THAT(message,
                testing::AllOf(HasSubstr("'nonsense'"), HasSubstr("glm4"), HasSubstr("--pre-tokenizer")));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_THAT(Tokenizer(data, {.pre_tokenizer = "qwen2"}).encode("hello"), ElementsAre(259));
    data.pre.clear();
    EXPECT_THAT(refusal(data, ErrorCode::Unsupported), HasSubstr("tokenizer.ggml.pre is missing"));
}

TEST(Tokenizer, RefusesAlgorithmsItDoesNotKnow) {
    VocabularyData data = small_vocabularies::bpe();
    data.model = "rwkv";
    EXPECT_THAT(refusal(data, ErrorCode::Unsupported), HasSubstr("'rwkv'"));
}

TEST(Tokenizer, ASpaceIsReadBeforeEveryStretchOfText) {
    const Tokenizer with_prefix(sentence_piece(std::nullopt));
    EXPECT_THAT(with_prefix.encode("w</s>w", kParse), ElementsAre(268, 2, 268));
    const Tokenizer without_prefix(sentence_piece(false));
    EXPECT_THAT(without_prefix.encode("w</s>w", kParse), ElementsAre(264, 2, 264));
    EXPECT_THAT(without_prefix.encode("<s></s>\n", kParse),
                ElementsAre(1, 2, 3 + '\n'));  // no space token between
}

TEST(Tokenizer, DecodingDropsTheSpaceThatWasPutInFront) {
    const Tokenizer tokenizer(sentence_piece(true));
    const std::vector<TokenId> ids = {1, 268, 268};
    EXPECT_EQ(tokenizer.decode(ids), "w w");
    EXPECT_EQ(tokenizer.decode(ids, {.leading_space = LeadingSpace::Keep}), " w w");
    EXPECT_EQ(tokenizer.decode(ids, {.control = ControlTokens::Show}), "<s> w w");
    EXPECT_EQ(Tokenizer(sentence_piece(false)).decode(ids), " w w");
}

TEST(Tokenizer, PiecesAreBytesAndControlTokensHideOnRequest) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    EXPECT_EQ(tokenizer.vocabulary_size(), 268);
    EXPECT_EQ(tokenizer.piece(260), " w");
    EXPECT_EQ(tokenizer.piece(264), "<|im_end|>");
    EXPECT_EQ(tokenizer.piece(264, ControlTokens::Hide), "");
    EXPECT_EQ(tokenizer.piece(266, ControlTokens::Hide), "<think>");
    EXPECT_TRUE(tokenizer.is_end_of_generation(264));
    EXPECT_FALSE(tokenizer.is_end_of_generation(263));
    for (const TokenId id : {-1, 268}) {
        EXPECT_THROW(tokenizer.piece(id), Error);
        EXPECT_THROW(tokenizer.is_end_of_generation(id), Error);
        EXPECT_THROW(tokenizer.decode(std::vector<TokenId>{id}), Error);
    }
}

// Harmony's structure tokens are shown in answers, and must not be forgeable for that.
TEST(Tokenizer, ShownControlTokensAreNotMadeFromPlainText) {
    VocabularyData data = small_vocabularies::bpe();
    const TokenId channel = small_vocabularies::add(data, "<|channel|>", TokenType::Control);
    small_vocabularies::add(data, "<|return|>", TokenType::Control);
    small_vocabularies::add(data, "<|call|>", TokenType::Control);
    const Tokenizer tokenizer(data);
    EXPECT_EQ(tokenizer.piece(channel, ControlTokens::Hide), "<|channel|>");
    EXPECT_THAT(tokenizer.encode("<|channel|>", kParse), ElementsAre(channel));
    EXPECT_THAT(tokenizer.encode("<|channel|>"), testing::Each(testing::Lt(256)));
}

/// Random bytes, among them many spaces, letters, markers and broken UTF-8.
std::string random_text(std::mt19937& random) {
    constexpr std::array<std::string_view, 12> kParts = {" ",        "hello",    "\n",   "<|im_end|>",
                                                         "<think>",  "1234",     "aa",   "\u6F22",
                                                         "\xE2\x96", "\xF0\x9F", "</s>", "'S "};
    std::string text;
    for (auto parts = random() % 30; parts > 0; --parts) {
        const auto choice = random() % (2 * kParts.size());
        text += choice < kParts.size() ? kParts[choice] : std::string(1, static_cast<char>(random()));
    }
    return text;
}

/// The text itself, but for U+2581, which SentencePiece-like vocabularies cannot tell from a space.
std::string expected_back(const Tokenizer& tokenizer, std::string_view text) {
    constexpr std::string_view kLowerBlock = "\u2581";
    if (tokenizer.vocabulary().data().model != "llama") return std::string(text);
    std::string result;
    while (!text.empty()) {
        const bool is_block = text.starts_with(kLowerBlock);
        result.push_back(is_block ? ' ' : text.front());
        text.remove_prefix(is_block ? kLowerBlock.size() : 1);
    }
    return result;
}

TEST(Tokenizer, AnyBytesSurviveTheRoundTrip) {
    constexpr unsigned kSeed = 11;
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    VocabularyData data = small_vocabularies::bpe();
    std::vector<std::unique_ptr<Tokenizer>> tokenizers;
    for (const char* pre :
         {"qwen2", "llama-bpe", "gpt-2", "deepseek-llm", "deepseek-v3", "gpt-4o", "default"}) {
        tokenizers.push_back(std::make_unique<Tokenizer>(data, TokenizerOptions{.pre_tokenizer = pre}));
    }
    tokenizers.push_back(std::make_unique<Tokenizer>(sentence_piece(true)));
    tokenizers.push_back(std::make_unique<Tokenizer>(sentence_piece(false)));
    for (int round = 0; round < 2000; ++round) {
        const std::string text = random_text(random);
        for (const auto& tokenizer : tokenizers) {
            ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), expected_back(*tokenizer, text));
        }
    }
}

/// Processor time of this thread, so that other programs on the machine do not count.
double cpu_seconds_of(const std::function<void()>& work) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double start = now();
    work();
    return now() - start;
}

// Sixteen times the text may take 16 log(16) times as long, doubled on a busy machine; quadratic time would
// take 256.
void expect_near_linear(const Tokenizer& tokenizer, std::string_view unit, const EncodeOptions& options) {
    constexpr std::size_t kMegabyte = 1 << 20;
    std::string text;
    while (text.size() < kMegabyte) text += unit;
    const std::string_view part = std::string_view(text).substr(0, kMegabyte / 16);
    const double small = cpu_seconds_of([&] { tokenizer.encode(part, options); });
    std::vector<TokenId> ids;
    const double large = cpu_seconds_of([&] { ids = tokenizer.encode(text, options); });
    EXPECT_LT(large, 100 * small + 0.01) << "of '" << unit << "'";
    EXPECT_EQ(tokenizer.decode(ids, {.control = ControlTokens::Show}), text);
}

TEST(Tokenizer, AMegabyteOfAnythingTakesNearLinearTime) {
    const Tokenizer bpe(small_vocabularies::bpe());
    const Tokenizer pieces(sentence_piece(true));
    for (const std::string_view unit :
         {"a", " ", "\n", "7", "hello world, it's 12 o'clock!\n", "\xFF", "<", "<think>", "<|im_end|"}) {
        expect_near_linear(bpe, unit, {});
        expect_near_linear(bpe, unit, kParse);
        expect_near_linear(pieces, unit, {});
    }
}

TEST(Tokenizer, ManyTurnsAndManySpecialTokensTakeNearLinearTime) {
    VocabularyData data = small_vocabularies::bpe();
    for (int i = 0; i < 1000; ++i)
        small_vocabularies::add(data, fmt::format("<|reserved_{}|>", i), TokenType::Control);
    expect_near_linear(Tokenizer(data), "<|im_start|>user\nhello<|im_end|>\n", kParse);
}

TEST(Tokenizer, RefusesATextAboveItsLimit) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    const std::string text(Tokenizer::kMaxTextBytes + 1, ' ');
    EXPECT_THROW(tokenizer.encode(text), Error);
}

TEST(Tokenizer, ManyThreadsMayShareIt) {
    const Tokenizer tokenizer(small_vocabularies::bpe());
    const std::string text = "hello world, it's 12 o'clock! <think>aaaaaaa";
    const std::vector<TokenId> expected = tokenizer.encode(text);
    std::vector<std::thread> threads;
    std::array<bool, 4> same{};
    for (std::size_t t = 0; t < same.size(); ++t) {
        threads.emplace_back([&, t] {
            same[t] = true;
            for (int i = 0; i < 200; ++i) same[t] = same[t] && tokenizer.encode(text) == expected;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(same, testing::Each(true));
}

}  // namespace
}  // namespace coterie
