#include <cmath>

#include "sampling/samplers/samplers.h"

namespace coterie {

void MinP::apply(Candidates& candidates, Random&) {
    const float threshold = candidates.max_logit() + std::log(p_);
    candidates.remove_if([threshold](const Candidate& candidate) { return candidate.logit < threshold; });
}

}  // namespace coterie
