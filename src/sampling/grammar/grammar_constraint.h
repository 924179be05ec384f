#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/grammar/grammar.h"
#include "sampling/grammar/grammar_vocabulary.h"
#include "sampling/grammar/parse_state.h"

namespace coterie {

namespace grammar {
class MaskCache;
}

/// Holds one sequence to a grammar: tells which tokens may come next, and follows those that came.
///
///     GrammarConstraint constraint(grammar, vocabulary);
///     token = chain.sample(logits, constraint.mask());
///     constraint.accept(token);
///
/// Copies share the masks that were computed (several answers to one prompt, a state to come back to) and may
/// be used by different threads; one object belongs to one thread at a time. What is seen for the first time
/// is computed and allocated; then a token costs a few microseconds and allocates nothing.
class GrammarConstraint {
  public:
    /// Throws InvalidArgument if the grammar names a token that the vocabulary does not have.
    GrammarConstraint(GrammarPointer grammar, std::shared_ptr<const GrammarVocabulary> vocabulary);
    GrammarConstraint(const GrammarConstraint&);
    GrammarConstraint& operator=(const GrammarConstraint&);
    GrammarConstraint(GrammarConstraint&&) noexcept;
    GrammarConstraint& operator=(GrammarConstraint&&) noexcept;
    ~GrammarConstraint();

    /// A state at the grammar's start that shares the masks of this one: for further requests with the same
    /// grammar.
    GrammarConstraint fresh() const;

    /// Computes ahead what answers to this grammar will need, as far as it gets within the limit. Any thread
    /// may, while others use copies.
    void prepare(std::chrono::milliseconds limit) const;

    /// Which tokens may come next: bit `id % 64` of word `id / 64`. After the end only end tokens may.
    /// Valid until the next call of anything that is not const. Throws InvalidArgument if no token fits,
    /// which needs a vocabulary without some bytes, or the grammar is too ambiguous.
    std::span<const std::uint64_t> mask();

    /// Whether this one token may come next; cheaper than a mask.
    bool allows(std::int32_t token);

    /// Goes on by a token. Throws InvalidArgument for one that may not come next (the state stays as it
    /// was), and for an answer nested deeper or more ambiguous than the limits of `ParseState`.
    void accept(std::int32_t token);

    /// Whether the answer may end here: end tokens are allowed.
    bool may_end() const { return state_.may_end(); }
    /// Whether nothing but an end can follow, or an end token came.
    bool finished() const { return ended_ || (state_.may_end() && state_.must_end()); }

  private:
    explicit GrammarConstraint(std::shared_ptr<grammar::MaskCache> masks);

    std::shared_ptr<grammar::MaskCache> masks_;
    grammar::ParseState state_;
    std::vector<std::uint64_t> mask_;
    bool mask_is_current_ = false;
    bool ended_ = false;
};

}  // namespace coterie
