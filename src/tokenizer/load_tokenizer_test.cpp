#include "tokenizer/load_tokenizer.h"

#include <functional>
#include <gmock/gmock.h>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

gguf::Header header_of(const VocabularyData& data) {
    gguf::Header header;
    header.set("tokenizer.ggml.model", std::string_view(data.model));
    header.set("tokenizer.ggml.pre", std::string_view(data.pre));
    header.set_array("tokenizer.ggml.tokens", std::span<const std::string>(data.tokens));
    header.set_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(data.token_types));
    if (!data.scores.empty()) header.set_array("tokenizer.ggml.scores", std::span<const float>(data.scores));
    if (!data.merges.empty())
        header.set_array("tokenizer.ggml.merges", std::span<const std::string>(data.merges));
    if (data.special.bos) header.set("tokenizer.ggml.bos_token_id", std::int32_t{*data.special.bos});
    if (data.add_bos_token) header.set("tokenizer.ggml.add_bos_token", *data.add_bos_token);
    if (data.add_eos_token) header.set("tokenizer.ggml.add_eos_token", *data.add_eos_token);
    return header;
}

/// What loading it is refused with; empty where it works.
std::string refusal(const VocabularyData& data) {
    const std::vector<std::byte> bytes = header_of(data).serialise();
    const gguf::Directory directory = gguf::read_directory(bytes, "some.gguf");
    try {
        static_cast<void>(load_tokenizer(directory.metadata));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

struct Damage {
    const char* names;  ///< what the refusal holds
    VocabularyData (*start)();
    std::function<void(VocabularyData&)> make;
};

TEST(LoadTokenizer, AnUnknownNameFromAFlagIsTheFlagsFault) {
    const std::vector<std::byte> bytes = header_of(small_vocabularies::bpe()).serialise();
    const gguf::Directory directory = gguf::read_directory(bytes, "some.gguf");
    try {
        static_cast<void>(load_tokenizer(directory.metadata, {.pre_tokenizer = "bogus"}));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        EXPECT_THAT(error.what(), StartsWith("--pre-tokenizer bogus: unknown; known are "));
    }
}

TEST(LoadTokenizer, EveryRefusalNamesTheFile) {
    using small_vocabularies::bpe;
    using small_vocabularies::sentence_piece;
    EXPECT_EQ(refusal(bpe()), "");
    EXPECT_EQ(refusal(sentence_piece()), "");
    const Damage damages[] = {
        {"tokenizer.ggml.model 'bert'", bpe, [](auto& data) { data.model = "bert"; }},
        {"tokenizer.ggml.pre is missing", bpe, [](auto& data) { data.pre.clear(); }},
        {"'no-such'", bpe, [](auto& data) { data.pre = "no-such"; }},
        {"tokenizer.ggml.merges", bpe, [](auto& data) { data.merges.clear(); }},
        {"tokenizer.ggml.merges: entry 1", bpe, [](auto& data) { data.merges[1] = "joined"; }},
        {"tokenizer.ggml.token_type", bpe, [](auto& data) { data.token_types.pop_back(); }},
        {"tokenizer.ggml.token_type: token 3", bpe, [](auto& data) { data.token_types[3] = 77; }},
        {"bos_token_id", bpe, [](auto& data) { data.special.bos = 1 << 20; }},
        {"add_eos_token", bpe, [](auto& data) { data.special.eos.reset(), data.add_eos_token = true; }},
        {"special token 263", bpe, [](auto& data) { data.tokens[263] = std::string(1 << 17, 'x'); }},
        {"tokenizer.ggml.scores", sentence_piece, [](auto& data) { data.scores.pop_back(); }},
        {"tokenizer.ggml.scores: entry 2", sentence_piece, [](auto& data) { data.scores[2] = NAN; }},
        {"byte token 3", sentence_piece, [](auto& data) { data.tokens[3] = "<0xZZ>"; }},
        {"add_bos_token", bpe, [](auto& data) { data.special.bos.reset(), data.add_bos_token = true; }},
    };
    for (const Damage& damage : damages) {
        VocabularyData data = damage.start();
        damage.make(data);
        const std::string message = refusal(data);
        EXPECT_THAT(message, StartsWith("some.gguf: ")) << damage.names;
        EXPECT_THAT(message, HasSubstr(damage.names));
    }
}

}  // namespace
}  // namespace coterie
