#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "speculative/drafter.h"
#include "speculative/step_costs.h"

namespace coterie::speculative {

/// Drafts for one answer, and learns from what became of them how far a draft is worth computing.
class Speculator {
  public:
    explicit Speculator(std::unique_ptr<Drafter> drafter) : drafter_(std::move(drafter)) {}

    /// What may follow `tokens`, at most `most` and no more than pays within the step. Valid until the next
    /// call. Requires what Drafter::draft does.
    std::span<const TokenId> draft(std::span<const TokenId> tokens, std::int64_t most, StepBudget& budget);

    /// Of the last draft the first `accepted` came true; `rejected` says whether the next one did not (the
    /// answer may also have ended there).
    void settle(std::int64_t accepted, bool rejected);

  private:
    static constexpr double kFirstGuess = 0.7;

    std::unique_ptr<Drafter> drafter_;
    double chance_ = kFirstGuess;  ///< of a drafted token, where all before it came true
};

/// Null for DraftSource::None.
std::unique_ptr<Speculator> make_speculator(const SpeculativeOptions& options, std::int64_t context);

}  // namespace coterie::speculative
