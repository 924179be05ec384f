#include "sampling/samplers/samplers.h"

namespace coterie {

void Xtc::apply(Candidates& candidates, Random& random) {
    if (random.uniform() >= probability_) return;
    candidates.softmax();
    const Candidate* last = nullptr;
    for (const Candidate& candidate : candidates.items()) {
        if (candidate.probability < threshold_) continue;
        if (!last || ranks_before(*last, candidate)) last = &candidate;
    }
    if (!last) return;
    const std::int32_t kept = last->id;
    candidates.remove_if([&](const Candidate& candidate) {
        return candidate.probability >= threshold_ && candidate.id != kept;
    });
}

}  // namespace coterie
