#include "sampling/sampler_chain.h"

#include <limits>
#include <random>

#include "base/error.h"

namespace coterie {
namespace {

constexpr std::uint32_t kRandomSeed = std::numeric_limits<std::uint32_t>::max();

std::uint32_t choose_seed(std::int64_t seed) {
    if (seed >= 0 && seed != kRandomSeed) return static_cast<std::uint32_t>(seed);
    std::random_device device;
    std::uint32_t chosen = kRandomSeed;
    while (chosen == kRandomSeed) chosen = device();
    return chosen;
}

const SamplingOptions& checked(const SamplingOptions& options) {
    check_ranges(options);
    return options;
}

}  // namespace

SamplerChain::SamplerChain(const SamplingOptions& options, std::int64_t vocabulary,
                           std::vector<std::int32_t> dry_breakers)
    : greedy_(checked(options).temperature == 0),
      seed_(choose_seed(options.seed)),
      random_(seed_),
      vocabulary_(vocabulary) {
    if (!options.logit_bias.empty()) biases_ = std::make_unique<LogitBias>(options.logit_bias, vocabulary);
    if (options.mirostat != 0 && !greedy_) {
        add(SamplerKind::Temperature, options, dry_breakers);
        if (options.mirostat == 1) append<MirostatV1>(options.mirostat_tau, options.mirostat_eta);
        if (options.mirostat == 2) append<MirostatV2>(options.mirostat_tau, options.mirostat_eta);
        return;
    }
    for (const SamplerKind kind : options.samplers) {
        const bool filters = kind != SamplerKind::Penalties && kind != SamplerKind::Dry;
        if (!(greedy_ && filters)) add(kind, options, dry_breakers);
    }
    if (greedy_ && samplers_.empty()) most_ = 1;
    // Biased tokens may leave the best ones; as many others then follow.
    if (biases_ && most_ != LogitScan::kAll) most_ += biases_->tokens().size();
}

void SamplerChain::add(SamplerKind kind, const SamplingOptions& o, std::vector<std::int32_t>& dry_breakers) {
    switch (kind) {
        case SamplerKind::Penalties: {
            const bool lowers = o.repeat_penalty != 1 || o.frequency_penalty != 0 || o.presence_penalty != 0;
            if (o.repeat_last_n == 0 || !lowers) return;
            return append<Penalties>(vocabulary_, o.repeat_last_n, o.repeat_penalty, o.frequency_penalty,
                                     o.presence_penalty);
        }
        case SamplerKind::Dry:
            if (o.dry_multiplier == 0 || o.dry_penalty_last_n == 0) return;
            return append<Dry>(o.dry_multiplier, o.dry_base, o.dry_allowed_length, o.dry_penalty_last_n,
                               std::move(dry_breakers));
        case SamplerKind::TopNSigma:
            if (o.top_n_sigma > 0) append<TopNSigma>(o.top_n_sigma);
            return;
        case SamplerKind::TopK:
            if (o.top_k <= 0) return;
            if (samplers_.empty()) most_ = static_cast<std::size_t>(o.top_k);
            return append<TopK>(o.top_k);
        case SamplerKind::TypP:
            if (o.typical_p < 1) append<Typical>(o.typical_p);
            return;
        case SamplerKind::TopP:
            if (o.top_p < 1) append<TopP>(o.top_p);
            return;
        case SamplerKind::MinP:
            if (o.min_p > 0) append<MinP>(o.min_p);
            return;
        case SamplerKind::Xtc:
            if (o.xtc_probability > 0) append<Xtc>(o.xtc_probability, o.xtc_threshold);
            return;
        case SamplerKind::Temperature:
            if (o.temperature == 1 && o.dynatemp_range == 0) return;
            return append<Temperature>(o.temperature, o.dynatemp_range, o.dynatemp_exponent);
    }
}

void SamplerChain::accept(std::int32_t token) {
    for (const auto& sampler : samplers_) sampler->accept(token);
}

void SamplerChain::accept(std::span<const std::int32_t> tokens) {
    for (const std::int32_t token : tokens) accept(token);
}

std::int32_t SamplerChain::sample(std::span<const float> logits, std::span<const std::uint64_t> allowed) {
    COTERIE_CHECK(static_cast<std::int64_t>(logits.size()) == vocabulary_);
    candidates_.load(logits, {.allowed = allowed,
                              .most = most_,
                              .also = biases_ ? biases_->tokens() : std::span<const std::int32_t>()});
    if (biases_) biases_->apply(candidates_, random_);
    for (const auto& sampler : samplers_) sampler->apply(candidates_, random_);
    if (greedy_) return candidates_.best().id;
    const Candidate& drawn = draw();
    for (const auto& sampler : samplers_) sampler->observe_draw(drawn.probability);
    return drawn.id;
}

const Candidate& SamplerChain::draw() {
    candidates_.softmax();
    double total = 0;
    for (const Candidate& candidate : candidates_.items()) total += candidate.probability;
    COTERIE_CHECK(total > 0.5 && total < 2);
    const double target = random_.uniform() * total;
    double sum = 0;
    const Candidate* last = nullptr;
    for (const Candidate& candidate : candidates_.items()) {
        if (candidate.probability == 0) continue;
        last = &candidate;
        sum += candidate.probability;
        if (target < sum) break;
    }
    return *last;
}

}  // namespace coterie
