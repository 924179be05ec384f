#include "sampling/grammar/grammar_constraint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sampling/grammar/mask_cache.h"

namespace coterie {
namespace {

void check_token_names(const Grammar& grammar, const GrammarVocabulary& vocabulary) {
    for (const std::string& name : grammar.automaton().token_names()) {
        if (vocabulary.has_special(name)) continue;
        fail(ErrorCode::InvalidArgument,
             "the grammar names the token <{}>, and the model has no special token of that name; write text "
             "in quotes",
             name);
    }
}

}  // namespace

GrammarConstraint::GrammarConstraint(GrammarPointer grammar,
                                     std::shared_ptr<const GrammarVocabulary> vocabulary)
    : GrammarConstraint((check_token_names(*grammar, *vocabulary),
                         std::make_shared<grammar::MaskCache>(grammar, vocabulary))) {}

GrammarConstraint::GrammarConstraint(std::shared_ptr<grammar::MaskCache> masks)
    : masks_(std::move(masks)),
      state_(masks_->grammar().automaton()),
      mask_(masks_->vocabulary().mask_words()) {}

GrammarConstraint::GrammarConstraint(const GrammarConstraint&) = default;
GrammarConstraint& GrammarConstraint::operator=(const GrammarConstraint&) = default;
GrammarConstraint::GrammarConstraint(GrammarConstraint&&) noexcept = default;
GrammarConstraint& GrammarConstraint::operator=(GrammarConstraint&&) noexcept = default;
GrammarConstraint::~GrammarConstraint() = default;

GrammarConstraint GrammarConstraint::fresh() const { return GrammarConstraint(masks_); }

void GrammarConstraint::prepare(std::chrono::milliseconds limit) const { masks_->prepare(limit); }

std::span<const std::uint64_t> GrammarConstraint::mask() {
    if (mask_is_current_) return mask_;
    std::fill(mask_.begin(), mask_.end(), 0);
    if (!ended_) masks_->fill(state_, mask_);
    if (may_end() || ended_) {
        for (const std::int32_t id : masks_->vocabulary().end_tokens())
            mask_[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    }
    if (std::all_of(mask_.begin(), mask_.end(), [](std::uint64_t word) { return word == 0; })) {
        fail(ErrorCode::InvalidArgument,
             "no token of the vocabulary can follow here: the grammar asks for text that it cannot write");
    }
    mask_is_current_ = true;
    return mask_;
}

bool GrammarConstraint::allows(std::int32_t token) {
    const GrammarVocabulary& vocabulary = masks_->vocabulary();
    if (token < 0 || token >= vocabulary.size()) return false;
    if (vocabulary.is_end(token)) return ended_ || may_end();
    const std::string_view bytes = vocabulary.bytes(token);
    return !ended_ && !bytes.empty() && state_.can_read(bytes);
}

void GrammarConstraint::accept(std::int32_t token) {
    const GrammarVocabulary& vocabulary = masks_->vocabulary();
    const bool known = token >= 0 && token < vocabulary.size();
    if (known && vocabulary.is_end(token) && (ended_ || may_end())) {
        ended_ = true;
    } else {
        const std::string_view bytes = known ? vocabulary.bytes(token) : std::string_view();
        if (ended_ || bytes.empty() || !state_.read(bytes))
            fail(ErrorCode::InvalidArgument, "token {} may not follow here by the grammar", token);
    }
    mask_is_current_ = false;
}

}  // namespace coterie
