#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {

// With log p = logit - c, the distance |-log p - H| is |logit - m|, where m = sum p * logit: no logarithm is
// needed.
void Typical::apply(Candidates& candidates, Random&) {
    candidates.softmax();
    double mean = 0;
    for (const Candidate& candidate : candidates.items()) {
        if (candidate.probability > 0) mean += static_cast<double>(candidate.probability) * candidate.logit;
    }
    candidates.keep_mass(p_, [mean](const Candidate& a, const Candidate& b) {
        const double distance_a = std::abs(a.logit - mean);
        const double distance_b = std::abs(b.logit - mean);
        return distance_a != distance_b ? distance_a < distance_b : ranks_before(a, b);
    });
}

}  // namespace coterie
