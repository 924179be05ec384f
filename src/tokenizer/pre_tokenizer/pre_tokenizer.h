#pragma once

#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "tokenizer/pre_tokenizer/pattern.h"
#include "tokenizer/pre_tokenizer/patterns.h"

namespace coterie {

/// Cuts text into the fragments within which byte-level BPE merges. Shareable by threads.
///
/// The patterns of a family apply one after another: each cuts every fragment that the ones before it have
/// left. Bytes that are not UTF-8 form fragments of their own, so that they pass through as single-byte
/// tokens.
class PreTokenizer {
  public:
    explicit PreTokenizer(const PreTokenizerFamily& family);

    /// Calls `fragment` with each fragment, in order; none is empty, together they are the text.
    void split(std::string_view text, FunctionRef<void(std::string_view)> fragment) const;

  private:
    void apply_from(std::size_t level, std::string_view text,
                    FunctionRef<void(std::string_view)> fragment) const;

    std::vector<Pattern> patterns_;
};

}  // namespace coterie
