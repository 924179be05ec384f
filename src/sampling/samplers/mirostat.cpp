#include <algorithm>
#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

constexpr std::size_t kZipfTokens = 100;

/// Least-squares slope through the origin of log(p_i / p_(i+1)) over log((i + 1) / i) for the most probable
/// tokens.
double zipf_exponent(const Candidates& candidates, std::size_t tokens) {
    double products = 0;
    double squares = 0;
    for (std::size_t i = 0; i + 1 < tokens && std::isfinite(candidates[i + 1].logit); ++i) {
        const double x = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
        products += x * (static_cast<double>(candidates[i].logit) - candidates[i + 1].logit);
        squares += x * x;
    }
    return squares > 0 ? products / squares : 0;
}

}  // namespace

void Mirostat::apply(Candidates& candidates, Random&) {
    candidates.softmax();
    const std::size_t count = std::max<std::size_t>(kept(candidates), 1);
    candidates.sort_prefix(count);
    kept_probability_ = 0;
    for (const Candidate& candidate : candidates.items().first(count))
        kept_probability_ += candidate.probability;
    candidates.keep_first(count);
}

void Mirostat::observe_draw(double probability) {
    const double surprise = -std::log2(probability * kept_probability_);
    mu_ -= eta_ * (surprise - tau_);
}

std::size_t MirostatV1::kept(Candidates& candidates) const {
    const std::size_t size = candidates.size();
    const std::size_t tokens = std::min(size, kZipfTokens);
    candidates.sort_prefix(tokens);
    const double s = zipf_exponent(candidates, tokens);
    const double epsilon = s - 1;
    const double log_size = std::log(static_cast<double>(size));
    // epsilon / (1 - N^-epsilon), which tends to 1 / log N.
    const double scale = std::abs(epsilon) < 1e-9 ? 1 / log_size : epsilon / -std::expm1(-epsilon * log_size);
    const double k = std::pow(scale * std::exp2(mu()), 1 / s);
    return k < static_cast<double>(size) ? static_cast<std::size_t>(std::max(k, 1.0)) : size;
}

std::size_t MirostatV2::kept(Candidates& candidates) const {
    const double lowest = std::exp2(-mu());
    return static_cast<std::size_t>(
        std::count_if(candidates.items().begin(), candidates.items().end(),
                      [lowest](const Candidate& candidate) { return candidate.probability >= lowest; }));
}

}  // namespace coterie
