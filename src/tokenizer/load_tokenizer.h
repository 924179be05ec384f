#pragma once

#include <memory>

#include "gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace coterie {

/// The tokenizer of a model file. Throws what `load_vocabulary` and Tokenizer throw, with the file's name in
/// front where it is the file's fault.
std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Metadata& metadata,
                                          const TokenizerOptions& options = {});

}  // namespace coterie
