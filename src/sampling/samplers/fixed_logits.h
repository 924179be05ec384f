#pragma once

#include <cmath>
#include <vector>

#include "sampling/samplers/samplers.h"

/// For the tests of single samplers: logits in, what is left out.
namespace coterie::testing_support {

inline std::vector<float> logits_of(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

/// The ids that a sampler keeps, in the order in which it leaves them.
inline std::vector<std::int32_t> kept_ids(Sampler& sampler, const std::vector<float>& logits) {
    Candidates candidates;
    Random random(1);
    candidates.load(logits);
    sampler.apply(candidates, random);
    std::vector<std::int32_t> ids;
    for (const Candidate& candidate : candidates.items()) ids.push_back(candidate.id);
    return ids;
}

/// The logits after a sampler that keeps all candidates in place.
inline std::vector<float> changed_logits(Sampler& sampler, const std::vector<float>& logits) {
    Candidates candidates;
    Random random(1);
    candidates.load(logits);
    sampler.apply(candidates, random);
    std::vector<float> changed;
    for (const Candidate& candidate : candidates.items()) changed.push_back(candidate.logit);
    return changed;
}

inline void accept_all(Sampler& sampler, const std::vector<std::int32_t>& tokens) {
    for (const std::int32_t token : tokens) sampler.accept(token);
}

}  // namespace coterie::testing_support
