#pragma once

#include <cstdint>
#include <string_view>

namespace coterie::speculative {

/// Where drafts come from.
enum class DraftSource {
    None,
    Ngram,  ///< what followed the same tokens earlier in the text
};

/// The source of a name as on a command line: none, ngram-simple. Throws InvalidArgument that lists them.
DraftSource parse_draft_source(std::string_view name);

struct SpeculativeOptions {
    DraftSource source = DraftSource::None;
    std::int64_t most_tokens = 16;  ///< of a draft; at least 1
    std::int64_t ngram = 3;         ///< equal tokens that make what followed them a draft; at least 1
};

}  // namespace coterie::speculative
