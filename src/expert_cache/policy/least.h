#pragma once

#include <cstdint>
#include <span>

namespace coterie::expert_cache {

/// The candidate with the smallest key; of equal ones the one with the smallest number, so that the order of
/// the candidates does not matter. Requires: candidates not empty.
template <typename Key>
std::int32_t least(std::span<const std::int32_t> candidates, Key key) {
    std::int32_t best = candidates.front();
    auto best_key = key(best);
    for (const std::int32_t candidate : candidates.subspan(1)) {
        const auto candidate_key = key(candidate);
        if (candidate_key > best_key) continue;  // nearly always
        if (candidate_key == best_key && candidate > best) continue;
        best = candidate;
        best_key = candidate_key;
    }
    return best;
}

}  // namespace coterie::expert_cache
