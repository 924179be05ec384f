#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/random.h"
#include "sampling/sampler.h"
#include "sampling/samplers/samplers.h"
#include "sampling/sampling_options.h"

namespace coterie {

/// Draws the tokens of one sequence.
///
///     logits -> mask of a grammar -> logit bias -> samplers in their order -> draw
///
/// Samplers that are off are left out. The same options, seed, logits and accepted tokens give the same
/// tokens.
class SamplerChain {
  public:
    /// `dry_breakers` are the tokens of `dry_sequence_breakers` (dry_breakers.h). Throws InvalidArgument for
    /// options out of range and biases of tokens outside the vocabulary.
    SamplerChain(const SamplingOptions& options, std::int64_t vocabulary,
                 std::vector<std::int32_t> dry_breakers = {});

    /// The next token, from the logits of the whole vocabulary. It is not accepted yet. With `allowed`, a
    /// mask of tokens (GrammarConstraint::mask), only those can be drawn: the samplers never see the others.
    /// Throws InvalidArgument where no allowed token has a finite logit.
    std::int32_t sample(std::span<const float> logits, std::span<const std::uint64_t> allowed = {});

    /// Tells the samplers that look back what the sequence holds: the prompt, then each token that was kept.
    void accept(std::int32_t token);
    void accept(std::span<const std::int32_t> tokens);

    /// What the last token was drawn from, with probabilities that add up to 1; for greedy, some of the best.
    const Candidates& candidates() const { return candidates_; }

    /// The seed in use: the one asked for, or the random one.
    std::uint32_t seed() const { return seed_; }

  private:
    void add(SamplerKind kind, const SamplingOptions& options, std::vector<std::int32_t>& dry_breakers);
    template <typename T, typename... Args>
    void append(Args&&... args) {
        samplers_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    }
    const Candidate& draw();

    bool greedy_;
    std::uint32_t seed_;
    Random random_;
    std::int64_t vocabulary_;
    Candidates candidates_;
    std::unique_ptr<LogitBias> biases_;   ///< null: none
    std::size_t most_ = LogitScan::kAll;  ///< of the best tokens reach beyond the first sampler
    std::vector<std::unique_ptr<Sampler>> samplers_;
};

}  // namespace coterie
