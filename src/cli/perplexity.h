#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "engine/engine.h"

namespace coterie::cli {

struct PerplexityResult {
    std::int64_t tokens = 0;      ///< of the text
    std::int64_t predicted = 0;   ///< all but the first of each window
    double mean_nll = 0.0;        ///< negative natural-log likelihood
    double standard_error = 0.0;  ///< of perplexity()

    double perplexity() const;
};

struct PerplexityOptions {
    std::int64_t window = 512;
    /// Stands at the start of every window, as one of its tokens, for models that were trained so.
    std::optional<engine::TokenId> bos;
};

/// -log softmax(logits)[token], in binary64.
double negative_log_likelihood(std::span<const float> logits, engine::TokenId token);

/// Cuts the text into windows of `window` tokens, the last one shorter. Each starts from an empty context at
/// position 0, and all its tokens but the first are predicted; the mean is over all predicted tokens. Throws
/// InvalidArgument for a text with nothing to predict, InvalidFile where logits are not finite.
/// Requires: the engine's context is at least the window.
PerplexityResult measure_perplexity(engine::Engine& engine, std::span<const engine::TokenId> text,
                                    const PerplexityOptions& options,
                                    FunctionRef<void(std::int64_t done, std::int64_t total)> progress);

}  // namespace coterie::cli
