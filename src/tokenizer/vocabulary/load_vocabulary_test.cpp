#include "tokenizer/vocabulary/load_vocabulary.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "gguf/reader.h"
#include "gguf/writer.h"

namespace coterie {
namespace {

using testing::ElementsAre;

VocabularyData load(const gguf::Header& header) {
    const std::vector<std::byte> bytes = header.serialise();
    return load_vocabulary(gguf::read_directory(bytes, "test.gguf").metadata);
}

gguf::Header small_header() {
    gguf::Header header;
    header.set("tokenizer.ggml.model", std::string_view("llama"));
    const std::vector<std::string> tokens = {"<unk>", "a", "b"};
    header.set_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
    return header;
}

TEST(LoadVocabulary, ReadsWhatIsThereAndLeavesOutTheRest) {
    const VocabularyData data = load(small_header());
    EXPECT_EQ(data.model, "llama");
    EXPECT_EQ(data.pre, "");
    EXPECT_THAT(data.tokens, ElementsAre("<unk>", "a", "b"));
    EXPECT_TRUE(data.token_types.empty());
    EXPECT_EQ(data.special.bos, std::nullopt);
    EXPECT_EQ(data.add_bos_token, std::nullopt);
}

TEST(LoadVocabulary, ReadsAllKeys) {
    gguf::Header header = small_header();
    const std::vector<std::int32_t> types = {2, 1, 3};
    const std::vector<float> scores = {0, -1.5F, -2};
    const std::vector<std::string> merges = {"a b"};
    header.set_array("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
    header.set_array("tokenizer.ggml.scores", std::span<const float>(scores));
    header.set_array("tokenizer.ggml.merges", std::span<const std::string>(merges));
    header.set("tokenizer.ggml.pre", std::string_view("qwen2"));
    header.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
    header.set("tokenizer.ggml.eot_token_id", std::int32_t{2});
    header.set("tokenizer.ggml.padding_token_id", std::uint32_t{0xFFFFFFFF});  // "none"
    header.set("tokenizer.ggml.prefix_token_id", std::uint32_t{0});            // an old name
    header.set("tokenizer.ggml.add_bos_token", true);
    header.set("tokenizer.ggml.add_space_prefix", false);
    const VocabularyData data = load(header);
    EXPECT_THAT(data.token_types, ElementsAre(2, 1, 3));
    EXPECT_THAT(data.scores, ElementsAre(0, -1.5F, -2));
    EXPECT_THAT(data.merges, ElementsAre("a b"));
    EXPECT_EQ(data.pre, "qwen2");
    EXPECT_EQ(data.special.bos, 1);
    EXPECT_EQ(data.special.eot, 2);
    EXPECT_EQ(data.special.padding, std::nullopt);
    EXPECT_EQ(data.special.fim_prefix, 0);
    EXPECT_EQ(data.add_bos_token, true);
    EXPECT_EQ(data.add_eos_token, std::nullopt);
    EXPECT_EQ(data.add_space_prefix, false);
}

TEST(LoadVocabulary, RefusesFilesWithoutVocabularyAndImpossibleIds) {
    EXPECT_THROW(load(gguf::Header()), Error);
    gguf::Header header = small_header();
    header.set("tokenizer.ggml.bos_token_id", std::uint64_t{1} << 40);
    EXPECT_THROW(load(header), Error);
}

}  // namespace
}  // namespace coterie
