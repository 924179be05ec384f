#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {

void TopNSigma::apply(Candidates& candidates, Random&) {
    double sum = 0;
    double count = 0;
    for (const Candidate& candidate : candidates.items()) {
        if (!std::isfinite(candidate.logit)) continue;
        sum += candidate.logit;
        count += 1;
    }
    const double mean = sum / count;
    double squares = 0;
    for (const Candidate& candidate : candidates.items()) {
        if (std::isfinite(candidate.logit)) squares += (candidate.logit - mean) * (candidate.logit - mean);
    }
    const double threshold = candidates.max_logit() - n_ * std::sqrt(squares / count);
    candidates.remove_if([&](const Candidate& candidate) { return candidate.logit < threshold; });
}

}  // namespace coterie
