#include "speculative/speculator.h"

namespace coterie::speculative {
namespace {

constexpr double kLearns = 0.1;     ///< weight of one drafted token's fate
constexpr double kForgives = 0.02;  ///< step back to the first guess for a draft that was not tried

}  // namespace

std::span<const TokenId> Speculator::draft(std::span<const TokenId> tokens, std::int64_t most,
                                           StepBudget& budget) {
    const std::span<const TokenId> whole = drafter_->draft(tokens, most);
    std::size_t taken = 0;
    for (double chance = chance_; taken < whole.size() && budget.take(chance); chance *= chance_) ++taken;
    if (!whole.empty() && taken == 0) chance_ += kForgives * (kFirstGuess - chance_);
    return whole.first(taken);
}

void Speculator::settle(std::int64_t accepted, bool rejected) {
    for (std::int64_t i = 0; i < accepted; ++i) chance_ += kLearns * (1.0 - chance_);
    if (rejected) chance_ -= kLearns * chance_;
}

std::unique_ptr<Speculator> make_speculator(const SpeculativeOptions& options, std::int64_t context) {
    std::unique_ptr<Drafter> drafter = make_drafter(options, context);
    return drafter ? std::make_unique<Speculator>(std::move(drafter)) : nullptr;
}

}  // namespace coterie::speculative
