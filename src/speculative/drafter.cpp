#include "speculative/drafter.h"

#include "base/error.h"
#include "speculative/ngram_drafter.h"

namespace coterie::speculative {

DraftSource parse_draft_source(std::string_view name) {
    if (name == "none") return DraftSource::None;
    if (name == "ngram-simple") return DraftSource::Ngram;
    fail(ErrorCode::InvalidArgument, "--spec-type {}: must be none or ngram-simple", name);
}

std::unique_ptr<Drafter> make_drafter(const SpeculativeOptions& options, std::int64_t context) {
    if (options.source == DraftSource::None) return nullptr;
    return std::make_unique<NgramDrafter>(options.ngram, options.most_tokens, context);
}

}  // namespace coterie::speculative
