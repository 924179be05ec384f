#include "tokenizer/load_tokenizer.h"

#include <utility>

#include "base/error.h"
#include "tokenizer/vocabulary/load_vocabulary.h"

namespace coterie {

std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Metadata& metadata, const TokenizerOptions& options) {
    VocabularyData data = load_vocabulary(metadata);
    try {
        return std::make_unique<Tokenizer>(std::move(data), options);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::InvalidArgument) throw;  // a flag's fault
        throw Error(error.code(), fmt::format("{}: {}", metadata.file(), error.what()));
    }
}

}  // namespace coterie
