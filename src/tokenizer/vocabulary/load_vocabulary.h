#pragma once

#include "gguf/metadata.h"
#include "tokenizer/vocabulary/vocabulary_data.h"

namespace coterie {

/// Copies the `tokenizer.ggml.*` keys of a model file, without judging them: that is the Tokenizer's part.
/// Throws InvalidFile for a key of the wrong kind or an id outside 32 bits, and for a file without a
/// vocabulary.
VocabularyData load_vocabulary(const gguf::Metadata& metadata);

}  // namespace coterie
