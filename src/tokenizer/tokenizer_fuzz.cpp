#include <cstdlib>
#include <string_view>

#include "tokenizer/pre_tokenizer/patterns.h"
#include "tokenizer/small_vocabularies.h"
#include "tokenizer/streaming_detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace coterie {
namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

/// Any bytes encode, read back as they were, and stream as text; plain text holds no control token.
void check(const Tokenizer& tokenizer, std::string_view text) {
    for (const SpecialTokens special : {SpecialTokens::Plain, SpecialTokens::Parse}) {
        const auto ids = tokenizer.encode(text, {.special = special});
        StreamingDetokenizer detokenizer(tokenizer);
        for (const TokenId id : ids) detokenizer.add(id);
        detokenizer.flush();
        if (special == SpecialTokens::Parse) continue;
        for (const TokenId id : ids) require(tokenizer.vocabulary().type(id) != TokenType::Control);
        const bool loses_lower_blocks =
            tokenizer.vocabulary().data().model == "llama";  // U+2581 stands for a space
        require(tokenizer.decode(ids) == text ||
                (loses_lower_blocks && text.find("\u2581") != std::string_view::npos));
    }
}

}  // namespace
}  // namespace coterie

/// The first byte chooses the pre-tokenizer, the rest is the text.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace coterie;
    static const std::vector<std::unique_ptr<Tokenizer>> tokenizers = [] {
        std::vector<std::unique_ptr<Tokenizer>> all;
        for (const PreTokenizerFamily& family : pre_tokenizer_families()) {
            const TokenizerOptions options{.pre_tokenizer = std::string(family.names[0])};
            all.push_back(std::make_unique<Tokenizer>(small_vocabularies::bpe(), options));
        }
        all.push_back(std::make_unique<Tokenizer>(small_vocabularies::sentence_piece()));
        return all;
    }();
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    check(*tokenizers[data[0] % tokenizers.size()], text);
    return 0;
}
