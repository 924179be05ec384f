#pragma once

#include <string>

#include "expert_cache/placement/candidates.h"

namespace coterie::expert_cache {

struct Choice {
    Candidate candidate;
    std::string reason;  ///< one line
};

/// The candidate with the shortest token, unless the request names one. A cache must promise 2 % more than
/// whole layers, and the links must carry its uploads beside the token.
Choice choose_strategy(const StrategyProblem& problem);

}  // namespace coterie::expert_cache
