#include "cli/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "cli/bad_logits.h"

namespace coterie::cli {
namespace {

using engine::Slice;
using engine::TokenId;

/// Of numbers that come one by one.
struct Sums {
    std::int64_t count = 0;
    double sum = 0.0;
    double squares = 0.0;

    void add(double value) {
        ++count;
        sum += value;
        squares += value * value;
    }
};

/// Adds what the model thinks of every token of the window but the first.
void add_window(engine::Engine& engine, std::span<const TokenId> window, Sums& sums) {
    engine::Sequence sequence = engine.make_sequence();
    const auto step = static_cast<std::size_t>(engine.window());
    const std::span<const TokenId> inputs = window.first(window.size() - 1);
    for (std::size_t done = 0; done < inputs.size();) {
        const Slice slice{.sequence = &sequence,
                          .tokens = inputs.subspan(done, std::min(step, inputs.size() - done)),
                          .logits = Slice::Logits::All};
        engine.step({&slice, 1}, [&](std::int64_t row, std::span<const float> logits) {
            sums.add(negative_log_likelihood(logits, window[done + static_cast<std::size_t>(row) + 1]));
        });
        done += slice.tokens.size();
    }
}

PerplexityResult summarise(std::size_t tokens, const Sums& sums) {
    const auto count = static_cast<double>(sums.count);
    PerplexityResult result{.tokens = static_cast<std::int64_t>(tokens),
                            .predicted = sums.count,
                            .mean_nll = sums.sum / count,
                            .standard_error = 0.0};
    if (sums.count > 1) {
        const double variance = std::max(0.0, sums.squares / count - result.mean_nll * result.mean_nll);
        result.standard_error = std::sqrt(variance / (count - 1.0)) * result.perplexity();
    }
    return result;
}

}  // namespace

double PerplexityResult::perplexity() const { return std::exp(mean_nll); }

double negative_log_likelihood(std::span<const float> logits, TokenId token) {
    const double maximum = *std::max_element(logits.begin(), logits.end());
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - maximum);
    return maximum + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

PerplexityResult measure_perplexity(engine::Engine& engine, std::span<const TokenId> text,
                                    const PerplexityOptions& options,
                                    FunctionRef<void(std::int64_t done, std::int64_t total)> progress) {
    const auto own = static_cast<std::size_t>(options.window - (options.bos ? 1 : 0));
    Sums sums;
    for (std::size_t start = 0; start < text.size(); start += own) {
        const auto part = text.subspan(start, std::min(own, text.size() - start));
        std::vector<TokenId> window;
        if (options.bos) window.push_back(*options.bos);
        window.insert(window.end(), part.begin(), part.end());
        if (window.size() > 1) add_window(engine, window, sums);
        progress(static_cast<std::int64_t>(start + part.size()), static_cast<std::int64_t>(text.size()));
    }
    if (sums.count == 0) {
        fail(ErrorCode::InvalidArgument, "the text has {} tokens: too few to predict any", text.size());
    }
    if (!std::isfinite(sums.sum)) refuse_bad_logits(engine.archive().name());
    return summarise(text.size(), sums);
}

}  // namespace coterie::cli
